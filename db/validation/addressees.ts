/**
 * Whom an email goes to: one list in the order to, cc, bcc, with the places where cc and bcc begin, so that whatever
 * looks for a recipient has one list to look through. Pure. DECISIONS: Copies.
 */
import { parseMailbox } from './address.ts'

/** What stands in an email's recipients where an erased person stood: the others keep their places. */
export const ERASED = 'erased@erased.invalid'

/** As a request says it. */
type Asked = { to: readonly string[]; cc?: readonly string[]; bcc?: readonly string[] }

/** As a row holds it: how many recipients stand before the first of cc and of bcc; null when there is none. */
export type Addressed = { to_emails: readonly string[]; first_cc: number | null; first_bcc: number | null }

/** One list of all, and where cc and bcc begin. */
export const inOneList = ({ to, cc = [], bcc = [] }: Asked) => ({
  to_emails: [...to, ...cc, ...bcc],
  first_cc: cc.length > 0 ? to.length : null,
  first_bcc: bcc.length > 0 ? to.length + cc.length : null,
})

/** The same list taken apart again. */
export function addressees({ to_emails: all, first_cc, first_bcc }: Addressed) {
  const bccAt = first_bcc ?? all.length
  const ccAt = first_cc ?? bccAt
  return { to: all.slice(0, ccAt), cc: all.slice(ccAt, bccAt), bcc: all.slice(bccAt) }
}

/** Returns the identity of a recipient, which is the same for all spellings. */
export function recipientIdentity(recipient: string): string {
  const mailbox = parseMailbox(recipient)
  if (mailbox === null) return recipient.toLowerCase()
  const { address, domain } = mailbox
  return `${address.slice(0, address.lastIndexOf('@'))}@${domain}`.toLowerCase()
}
