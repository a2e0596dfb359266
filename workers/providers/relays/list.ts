/**
 * Lists the hosted relays and how their events are read. To add one, add its module here, and its name and header in
 * db/.
 */
import type { ReaderContext } from '../declared.ts'
import { relaySender } from '../mail/relay-sender.ts'
import { BREVO } from './brevo.ts'
import { MAILGUN } from './mailgun.ts'
import { POSTMARK } from './postmark.ts'
import { createRelayReader, type RelayPage } from './read-event.ts'
import { SENDGRID } from './sendgrid.ts'

const declared = <P extends RelayPage>(page: P) => ({
  name: page.relay,
  reader: ({ secrets, settings: { SMTP_URL } }: ReaderContext<{ SMTP_URL: string | undefined }>) =>
    createRelayReader(page, secrets, SMTP_URL ? relaySender(SMTP_URL) : null),
})

/** In the order of their names in db/. */
export const HOSTED_RELAYS = [MAILGUN, SENDGRID, POSTMARK, BREVO].map(declared)
