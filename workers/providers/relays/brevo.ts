/** Reads Brevo's events. Pure. */
import { type Finding, failed, found, type RelayPage, seen, textAt, unsubscribed } from './read-event.ts'

const REASON = ['reason']
const readReason = (event: unknown): string => textAt(event, REASON)

const complained = found('complained', 'complaint')
const opened = (event: unknown): Finding => seen('opened', textAt(event, ['user_agent']), '')
/** An open through a proxy is a machine's. */
const openedByProxy = (event: unknown): Finding => seen('opened', '', textAt(event, ['user_agent']), true)
/** Its own blocklist, or an internal error. It doesn't report why the address is on the list. */
const untouched = found('bounced', 'none', REASON)

const FINDINGS = new Map<string, (event: unknown) => Finding>([
  ['delivered', found('delivered', 'delivered', REASON)],
  ['deferred', found('delayed', 'none', REASON)],
  ['soft_bounce', (event) => failed(readReason(event), { reply: readReason(event) }, 'soft')],
  ['hard_bounce', (event) => failed(readReason(event), { reply: readReason(event) })],
  ['invalid_email', found('bounced', 'hard', REASON)],
  ['blocked', untouched],
  ['error', untouched],
  ['spam', complained],
  ['complaint', complained],
  ['unsubscribed', unsubscribed],
  ['opened', opened],
  ['unique_opened', opened],
  ['proxy_open', openedByProxy],
  ['unique_proxy_open', openedByProxy],
  ['click', (event) => seen('clicked', textAt(event, ['user_agent']), textAt(event, ['link']))],
])

export const BREVO: RelayPage = {
  relay: 'brevo',
  find: (event) => FINDINGS.get(textAt(event, ['event']))?.(event) ?? null,
  recipient: [['email']],
  time: [['ts_epoch'], ['ts_event'], ['ts']],
  // `id` belongs to the webhook or the account.
  id: [],
  reference: [['X-Mailin-custom']],
  message_id: [['message-id']],
}
