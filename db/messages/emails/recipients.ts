/**
 * The recipients of an email, stored as given. Two spellings of one address are one recipient. Pure. DECISIONS: Email
 * addresses, Duplicate recipients, Copies.
 */
import { parseMailbox } from '../../validation/address.ts'
import { type Addressed, addressees, ERASED, recipientIdentity } from '../../validation/addressees.ts'

/** Returns the address without a name. Text that isn't a mailbox is returned unchanged. */
const bareAddress = (recipient: string): string => parseMailbox(recipient)?.address ?? recipient

const byIdentity = (recipients: readonly string[]): Map<string, string> => {
  const found = new Map<string, string>()
  for (const recipient of recipients) {
    const identity = recipientIdentity(recipient)
    if (!found.has(identity)) found.set(identity, recipient)
  }
  return found
}

/** Returns the recipients as given, the first spelling of each. */
const distinctRecipients = (recipients: readonly string[]): string[] => [...byIdentity(recipients).values()]

/** Returns the bare addresses of the recipients by identity, in the first spelling of each. */
export const bareRecipients = (recipients: readonly string[]): Map<string, string> =>
  new Map([...byIdentity(recipients)].map(([identity, recipient]) => [identity, bareAddress(recipient)]))

/** Returns the recipients of the To and Cc headers, each once, without those in bcc. */
export function named(row: Addressed): { to: string[]; cc: string[] } {
  const { to, cc } = addressees(row)
  const shown = distinctRecipients([...to, ...cc].filter((recipient) => recipient !== ERASED))
  const isTo = new Set(to)
  return { to: shown.filter((one) => isTo.has(one)), cc: shown.filter((one) => !isTo.has(one)) }
}

/** Returns the recipients that haven't been erased, or all if all have been. */
export function present(recipients: readonly string[]): readonly string[] {
  const left = recipients.filter((recipient) => recipient !== ERASED)
  return left.length > 0 ? left : recipients
}

/** The recipients as shown. cc and bcc are only present if given. */
type Shown = { to_emails: readonly string[]; cc_emails?: readonly string[]; bcc_emails?: readonly string[] }

/** Returns all recipients of a shown email in the order to, cc, bcc. */
export const everyone = ({ to_emails, cc_emails = [], bcc_emails = [] }: Shown): string[] => [
  ...to_emails,
  ...cc_emails,
  ...bcc_emails,
]

/** The domain of a recipient, in lower case. */
export const domainOfRecipient = (recipient: string): string =>
  recipientIdentity(recipient).replace(/^.*@/, '')
