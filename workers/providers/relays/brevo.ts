/** Brevo's events. Pure. */
import { effectOfHardBounce } from '../mail/effects.ts'
import { type Finding, type RelayPage, statusIn, textAt } from './reading.ts'

const reasonOf = (event: unknown): string => textAt(event, ['reason'])

const complained = (): Finding => ({ kind: 'complained', effect: 'complaint', words: '' })
const opened = (): Finding => ({ kind: 'opened', effect: 'none', words: '' })
/** Its own blocklist, or a fault of its own: it does not say that the address is dead. */
const untouched = (event: unknown): Finding => ({ kind: 'bounced', effect: 'none', words: reasonOf(event) })

/** Without `proxy_open` and `unique_proxy_open`: machines open there. */
const FINDINGS = new Map<string, (event: unknown) => Finding>([
  ['delivered', (event) => ({ kind: 'delivered', effect: 'delivered', words: reasonOf(event) })],
  ['deferred', (event) => ({ kind: 'delayed', effect: 'none', words: reasonOf(event) })],
  ['soft_bounce', (event) => ({ kind: 'bounced', effect: 'soft', words: reasonOf(event) })],
  [
    'hard_bounce',
    (event) => {
      const words = reasonOf(event)
      return { kind: 'bounced', effect: effectOfHardBounce(statusIn(words)), words }
    },
  ],
  ['invalid_email', (event) => ({ kind: 'bounced', effect: 'hard', words: reasonOf(event) })],
  ['blocked', untouched],
  ['error', untouched],
  ['spam', complained],
  ['complaint', complained],
  ['opened', opened],
  ['unique_opened', opened],
  ['click', (event) => ({ kind: 'clicked', effect: 'none', words: textAt(event, ['link']) })],
])

export const BREVO: RelayPage = {
  relay: 'brevo',
  find: (event) => FINDINGS.get(textAt(event, ['event']))?.(event) ?? null,
  recipient: [['email']],
  time: [['ts_epoch'], ['ts_event'], ['ts']],
  // `id` is the webhook's, or the account's.
  id: [],
  reference: [['X-Mailin-custom']],
  message_id: [['message-id']],
}
