/** Reads Mailgun's events, the `event-data` part of its posts. Pure. */
import { OWN_NAME } from './header.ts'
import { type Finding, failed, found, type RelayPage, seen, textAt, unsubscribed } from './read-event.ts'

/** Its own suppression lists, by the code or reason of a dropped email. */
const LISTS: Record<string, Omit<Finding, 'words'>> = {
  '605': { kind: 'bounced', effect: 'hard' },
  'suppress-bounce': { kind: 'bounced', effect: 'hard' },
  '606': { kind: 'bounced', effect: 'unsubscribe' },
  'suppress-unsubscribe': { kind: 'bounced', effect: 'unsubscribe' },
  '607': { kind: 'complained', effect: 'complaint' },
  'suppress-complaint': { kind: 'complained', effect: 'complaint' },
}
/** The mailbox provider rejects us or the content. */
const BLOCKED = 'espblock'

const statusAt = (event: unknown, ...names: readonly string[]): string =>
  textAt(event, ...names.map((name) => ['delivery-status', name]))

const readMessage = (event: unknown): string => statusAt(event, 'message', 'description')

const readResponse = (event: unknown): string =>
  [statusAt(event, 'code'), readMessage(event) || textAt(event, ['reason'])]
    .filter((word) => word !== '')
    .join(' ')

function failedForGood(event: unknown): Finding {
  const [words, reason, code] = [readResponse(event), textAt(event, ['reason']), statusAt(event, 'code')]
  const list = [reason, code].find((name) => Object.hasOwn(LISTS, name))
  const listed = list === undefined ? undefined : LISTS[list]
  if (listed) return { ...listed, words }
  if (reason === BLOCKED) return { kind: 'bounced', effect: 'none', words }
  // It stopped after a while, which Mailgun also calls permanent.
  const most = reason === 'old' ? 'soft' : 'hard'
  const reply = `${code} ${readMessage(event)}`.trim()
  return failed(words, { reply, status: statusAt(event, 'enhanced-code') }, most)
}

function failure(event: unknown): Finding | null {
  const severity = textAt(event, ['severity'])
  if (severity === 'temporary') return { kind: 'delayed', effect: 'none', words: readResponse(event) }
  return severity === 'permanent' ? failedForGood(event) : null
}

const readAgent = (event: unknown): string => textAt(event, ['client-info', 'user-agent'])

const FINDINGS = new Map<string, (event: unknown) => Finding | null>([
  ['delivered', (event) => ({ kind: 'delivered', effect: 'delivered', words: readResponse(event) })],
  ['failed', failure],
  // Rejected before any attempt, because of the message or the account's permissions.
  ['rejected', found('bounced', 'none', ['reject', 'reason'])],
  ['complained', found('complained', 'complaint')],
  ['unsubscribed', unsubscribed],
  ['opened', (event) => seen('opened', readAgent(event), readAgent(event))],
  ['clicked', (event) => seen('clicked', readAgent(event), textAt(event, ['url']))],
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
