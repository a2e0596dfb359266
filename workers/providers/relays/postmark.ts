/** Postmark's events, by `RecordType`; a bounce has one of 22 types. Pure. */
import type { ContactEffect } from '../../../db/audience/contacts/effect.ts'
import { effectOfHardBounce } from '../mail/effects.ts'
import { OWN_NAME } from './header.ts'
import { type Finding, found, type RelayPage, statusIn, textAt } from './read-event.ts'

const wordsOf = (event: unknown): string =>
  textAt(event, ['Details'], ['Description'], ['Type']).replace(/^smtp; */i, '')

/** What the types mean for the contact that are the end of a message; the others are no bounce of ours. */
const EFFECTS = new Map<string, (event: unknown) => ContactEffect>([
  ['HardBounce', (event) => effectOfHardBounce(statusIn(wordsOf(event)))],
  ['BadEmailAddress', () => 'hard'],
  // Its own list of those that it does not send to any more.
  ['ManuallyDeactivated', () => 'hard'],
  ['SoftBounce', () => 'soft'],
  ['DnsError', () => 'soft'],
  ['Unknown', () => 'soft'],
  ['SpamNotification', () => 'none'],
  ['VirusNotification', () => 'none'],
  ['Blocked', () => 'none'],
  ['DMARCPolicy', () => 'none'],
  ['SMTPApiError', () => 'none'],
  ['TemplateRenderingFailed', () => 'none'],
])

const complained = (event: unknown): Finding => ({
  kind: 'complained',
  effect: 'complaint',
  words: wordsOf(event),
})

function bounced(event: unknown): Finding | null {
  const type = textAt(event, ['Type'])
  const words = wordsOf(event)
  if (type === 'Transient') return { kind: 'delayed', effect: 'none', words }
  if (type === 'SpamComplaint') return complained(event)
  const effectOf = EFFECTS.get(type)
  return effectOf ? { kind: 'bounced', effect: effectOf(event), words } : null
}

const FINDINGS = new Map<string, (event: unknown) => Finding | null>([
  ['Delivery', found('delivered', 'delivered', ['Details'])],
  ['Bounce', bounced],
  ['SpamComplaint', complained],
  ['Open', found('opened', 'none', ['UserAgent'])],
  ['Click', found('clicked', 'none', ['OriginalLink'])],
])

export const POSTMARK: RelayPage = {
  relay: 'postmark',
  find: (event) => FINDINGS.get(textAt(event, ['RecordType']))?.(event) ?? null,
  recipient: [['Recipient'], ['Email']],
  time: [['DeliveredAt'], ['BouncedAt'], ['ReceivedAt']],
  id: [['ID']],
  reference: [['Metadata', OWN_NAME]],
  // It gives each message an id of its own.
  message_id: [],
}
