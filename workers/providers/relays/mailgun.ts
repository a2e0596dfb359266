/** Mailgun's events: the part `event-data` of what it posts. Pure. */
import type { ContactEffect } from '../../../db/audience/contacts/effect.ts'
import { effectOfHardBounce } from '../mail/effects.ts'
import { OWN_NAME } from './header.ts'
import { type Finding, found, type RelayPage, statusIn, textAt } from './read-event.ts'

/** Its own suppression lists: bounced before, unsubscribed there, complained there. */
const SUPPRESSED_CODES: ReadonlySet<string> = new Set(['605', '606', '607'])
/** The mailbox provider refuses us or the content. */
const REFUSES_US = 'espblock'

const wordsOf = (event: unknown): string =>
  [
    textAt(event, ['delivery-status', 'code']),
    textAt(event, ['delivery-status', 'message'], ['delivery-status', 'description'], ['reason']),
  ]
    .filter((word) => word !== '')
    .join(' ')

function effectOfPermanent(event: unknown): ContactEffect {
  const status = (name: string): string => textAt(event, ['delivery-status', name])
  const [reason, code] = [textAt(event, ['reason']), status('code')]
  if (reason.startsWith('suppress-') || SUPPRESSED_CODES.has(code)) return 'hard'
  const enhanced = statusIn(status('enhanced-code'), status('message'), status('description'))
  // It gave up after a while: Mailgun's word for that is permanent, too.
  if (enhanced.startsWith('4.') || (enhanced === '' && (code.startsWith('4') || reason === 'old')))
    return 'soft'
  return reason === REFUSES_US ? 'none' : effectOfHardBounce(enhanced)
}

function failed(event: unknown): Finding | null {
  const words = wordsOf(event)
  const severity = textAt(event, ['severity'])
  if (severity === 'temporary') return { kind: 'delayed', effect: 'none', words }
  return severity === 'permanent' ? { kind: 'bounced', effect: effectOfPermanent(event), words } : null
}

const FINDINGS = new Map<string, (event: unknown) => Finding | null>([
  ['delivered', (event) => ({ kind: 'delivered', effect: 'delivered', words: wordsOf(event) })],
  ['failed', failed],
  // Before any try: for what the message is, or what the account may do.
  ['rejected', found('bounced', 'none', ['reject', 'reason'])],
  ['complained', found('complained', 'complaint')],
  ['opened', found('opened', 'none', ['client-info', 'user-agent'])],
  ['clicked', found('clicked', 'none', ['url'])],
])

export const MAILGUN: RelayPage = {
  relay: 'mailgun',
  find: (event) => FINDINGS.get(textAt(event, ['event']))?.(event) ?? null,
  recipient: [['recipient']],
  time: [['timestamp']],
  id: [['id']],
  reference: [['user-variables', OWN_NAME]],
  message_id: [['message', 'headers', 'message-id']],
}
