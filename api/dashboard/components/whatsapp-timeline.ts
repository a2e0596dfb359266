/** Builds the timeline of a WhatsApp message, like timeline.ts for emails. Pure. */
import type { WhatsappEnd } from '../../../db/messages/whatsapp/ended.sql.ts'
import { meaningOf } from '../../../db/messages/whatsapp/meaning.ts'
import type { ShownMessage } from '../../../db/messages/whatsapp/show.ts'
import type { Moment } from './section.ts'
import { queuedSentence } from './sentence.ts'
import { buildTimeline, type EventText, eventText, type Viewer, WORDING, wordsFor } from './timeline.ts'

const WHATSAPP_WORDING: Record<string, EventText> = {
  ...WORDING,
  sent: { title: 'Sent by Meta', tone: 'busy' },
  accepted: { title: 'Accepted by Meta', tone: 'busy' },
  delivered: { title: 'Delivered to the phone', tone: 'good' },
  read: { title: 'Read', tone: 'good' },
  failed: { title: 'Failed', tone: 'bad' },
  unknown: { title: 'Meta’s response was lost', tone: 'warn' },
}

export const lastFailure = ({ events }: Pick<ShownMessage, 'events'>) =>
  events.findLast(({ kind }) => kind === 'failed' || kind === 'gave_up')

/**
 * Builds the timeline of a WhatsApp message, latest first, with the meaning of the provider's error codes.
 * The sentence at the top of the page has the meaning of the last failure.
 */
export const messageMoments = (
  message: Pick<ShownMessage, 'events' | 'created_at' | 'status'>,
  viewer: Viewer,
): Moment[] => {
  const failure = message.status === 'failed' ? lastFailure(message) : undefined
  return buildTimeline(message, viewer.now, (event) => {
    const { kind, code = null } = event
    const detail = wordsFor(viewer, event)
    const meaning = detail !== '' && event !== failure && meaningOf(code)
    const words = [meaning, detail, code && `Meta’s error ${code}`].filter(Boolean).join(' · ')
    return { ...(WHATSAPP_WORDING[kind] ?? eventText(kind)), detail: words }
  })
}

const MESSAGE_SENTENCES: Readonly<Record<string, string>> = {
  sent: 'Meta has sent it. Nothing has been reported since.',
  delivered: 'Delivered to the phone.',
  read: 'Delivered and read.',
}

/**
 * Describes the status of a message in one sentence, for the top of its page.
 * @param ended how it ended, if it was never sent.
 */
export function messageSentence(
  { status, events, waiting }: Pick<ShownMessage, 'status' | 'events' | 'waiting'>,
  ended?: WhatsappEnd,
): string {
  const last = lastFailure({ events })
  if (status === 'failed') {
    const meaning = meaningOf(last?.code ?? null)
    return meaning === null ? 'Failed.' : `Failed. ${meaning}`
  }
  if (status === 'queued' && !last && !waiting && events.some(({ kind }) => kind === 'accepted'))
    return 'Sent to Meta. Nothing has been reported since.'
  if (status === 'queued') return queuedSentence(waiting, ended)
  return MESSAGE_SENTENCES[status] ?? ''
}
