/** Reads Postmark's events, by `RecordType`. A bounce has one of 22 types. Pure. */
import { OWN_NAME } from './header.ts'
import {
  type Finding,
  failed,
  found,
  isSet,
  type RelayPage,
  seen,
  textAt,
  unsubscribed,
} from './read-event.ts'

const readResponse = (event: unknown): string =>
  textAt(event, ['Details'], ['Description'], ['Type']).replace(/^smtp; */i, '')

const toFinding =
  (kind: Finding['kind'], effect: Finding['effect']) =>
  (event: unknown): Finding => ({ kind, effect, words: readResponse(event) })
const complained = toFinding('complained', 'complaint')
const dead = toFinding('bounced', 'hard')
const untouched = toFinding('bounced', 'none')
const softly = (event: unknown): Finding =>
  failed(readResponse(event), { reply: readResponse(event) }, 'soft')

/** The meaning of the types. Others are not bounces. */
const TYPES = new Map<string, (event: unknown) => Finding>([
  ['HardBounce', (event) => failed(readResponse(event), { reply: readResponse(event) })],
  ['BadEmailAddress', dead],
  // Its own list of addresses that it no longer sends to.
  ['ManuallyDeactivated', dead],
  ['SoftBounce', softly],
  ['DnsError', softly],
  ['Unknown', softly],
  ['SpamNotification', untouched],
  ['VirusNotification', untouched],
  ['Blocked', untouched],
  ['DMARCPolicy', untouched],
  ['SMTPApiError', untouched],
  ['TemplateRenderingFailed', untouched],
  ['Transient', toFinding('delayed', 'none')],
  ['AutoResponder', toFinding('auto_reply', 'none')],
  ['SpamComplaint', complained],
  ['Unsubscribe', unsubscribed],
])

/** Reads a change of its suppression list by a bounce, a complaint, or the recipient. */
function subscriptionChanged(event: unknown): Finding | null {
  if (!isSet(event, ['SuppressSending'])) return null
  const words = textAt(event, ['SuppressionReason'])
  if (words === 'HardBounce') return { kind: 'bounced', effect: 'hard', words }
  if (words === 'SpamComplaint') return { kind: 'complained', effect: 'complaint', words }
  return { kind: 'unsubscribed', effect: 'unsubscribe', words }
}

const readAgent = (event: unknown): string => textAt(event, ['UserAgent'])

const FINDINGS = new Map<string, (event: unknown) => Finding | null>([
  ['Delivery', found('delivered', 'delivered', ['Details'])],
  ['Bounce', (event) => TYPES.get(textAt(event, ['Type']))?.(event) ?? null],
  ['SpamComplaint', complained],
  ['SubscriptionChange', subscriptionChanged],
  ['Open', (event) => seen('opened', readAgent(event), readAgent(event))],
  ['Click', (event) => seen('clicked', readAgent(event), textAt(event, ['OriginalLink']))],
])

export const POSTMARK: RelayPage = {
  relay: 'postmark',
  find: (event) => FINDINGS.get(textAt(event, ['RecordType']))?.(event) ?? null,
  recipient: [['Recipient'], ['Email']],
  time: [['DeliveredAt'], ['BouncedAt'], ['ReceivedAt'], ['ChangedAt']],
  id: [['ID']],
  reference: [['Metadata', OWN_NAME]],
  // It assigns its own id to each message.
  message_id: [],
}
