/**
 * Converts between `to`, `cc` and `bcc` and the one list of recipients that an email's row stores. DECISIONS: Copies.
 */
import { parseMailbox } from './address.ts'

/** Replaces an erased recipient in a list, so that the other recipients keep their positions. */
export const ERASED = 'erased@erased.invalid'

type Asked = { to: readonly string[]; cc?: readonly string[]; bcc?: readonly string[] }

/** `first_cc` and `first_bcc` are the positions of the first cc and bcc recipient, or null. */
export type Addressed = { to_emails: readonly string[]; first_cc: number | null; first_bcc: number | null }

/** Merges the three lists into the columns of a row. */
export const inOneList = ({ to, cc = [], bcc = [] }: Asked) => ({
  to_emails: [...to, ...cc, ...bcc],
  first_cc: cc.length > 0 ? to.length : null,
  first_bcc: bcc.length > 0 ? to.length + cc.length : null,
})

/** Splits the list of a row into `to`, `cc` and `bcc`. */
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
