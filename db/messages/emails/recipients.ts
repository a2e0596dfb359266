/**
 * The recipients of an email: stored as given, with or without a name; two spellings of one address are one recipient.
 * Pure. DECISIONS: Email addresses, Recipients that differ only in case.
 */
import { parseMailbox } from '../../text/address.ts'

/** The address without a name; what is no mailbox stays as it is. */
const bareAddress = (recipient: string): string => parseMailbox(recipient)?.address ?? recipient

/** What the spellings of a recipient share. */
export function recipientIdentity(recipient: string): string {
  const mailbox = parseMailbox(recipient)
  if (mailbox === null) return recipient.toLowerCase()
  const { address, domain } = mailbox
  return `${address.slice(0, address.lastIndexOf('@'))}@${domain}`.toLowerCase()
}

const byIdentity = (recipients: readonly string[]): Map<string, string> => {
  const found = new Map<string, string>()
  for (const recipient of recipients) {
    const identity = recipientIdentity(recipient)
    if (!found.has(identity)) found.set(identity, recipient)
  }
  return found
}

/** The recipients as given, the first spelling of each. */
export const distinctRecipients = (recipients: readonly string[]): string[] => [
  ...byIdentity(recipients).values(),
]

/** The bare addresses of the recipients by their identity, in the first spelling of each. */
export const bareRecipients = (recipients: readonly string[]): Map<string, string> =>
  new Map([...byIdentity(recipients)].map(([identity, recipient]) => [identity, bareAddress(recipient)]))
