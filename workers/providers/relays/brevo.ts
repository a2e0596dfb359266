/** Brevo's events. Pure. */
import { effectOfHardBounce } from '../mail/effects.ts'
import { type Finding, found, type RelayPage, statusIn, textAt } from './read-event.ts'

const REASON = ['reason']

function bouncedHard(event: unknown): Finding {
  const words = textAt(event, REASON)
  return { kind: 'bounced', effect: effectOfHardBounce(statusIn(words)), words }
}
const complained = found('complained', 'complaint')
const opened = found('opened', 'none')
/** Its own blocklist, or a fault of its own: it does not say that the address is dead. */
const untouched = found('bounced', 'none', REASON)

/** Without `proxy_open` and `unique_proxy_open`: machines open there. */
const FINDINGS = new Map<string, (event: unknown) => Finding>([
  ['delivered', found('delivered', 'delivered', REASON)],
  ['deferred', found('delayed', 'none', REASON)],
  ['soft_bounce', found('bounced', 'soft', REASON)],
  ['hard_bounce', bouncedHard],
  ['invalid_email', found('bounced', 'hard', REASON)],
  ['blocked', untouched],
  ['error', untouched],
  ['spam', complained],
  ['complaint', complained],
  ['opened', opened],
  ['unique_opened', opened],
  ['click', found('clicked', 'none', ['link'])],
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
