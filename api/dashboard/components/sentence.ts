/** Describes the status of an email or a webhook in one sentence, for the top of its page. Pure. */

import { DISABLED } from '../../../db/channels/events/webhooks.sql.ts'
import type { EmailEnd } from '../../../db/messages/emails/ended.sql.ts'
import { everyone } from '../../../db/messages/emails/recipients.ts'
import type { ShownEmail } from '../../../db/messages/emails/show.ts'
import { findWebhookEnd, type WebhookEnd } from '../../../db/messages/webhooks/ends.ts'
import type { ShownWebhook } from '../../../db/messages/webhooks/show.ts'
import { plural } from '../../../db/plural.ts'

/** Meanings of enhanced status codes by their last two parts (RFC 3463). */
const MEANINGS: Readonly<Record<string, string>> = {
  '1.0': 'the address is not accepted',
  '1.1': 'the mailbox does not exist',
  '1.2': 'the domain of the address does not exist',
  '1.3': 'the address is not valid',
  '1.6': 'the mailbox has moved',
  '1.10': 'the domain does not accept email',
  '2.1': 'the mailbox is disabled',
  '2.2': 'the mailbox is full',
  '2.3': 'the message is too large for the mailbox',
  '3.4': 'the message is too large for the server',
  '4.4': 'no mail server was found for the domain',
  '4.7': 'delivery timed out',
  '7.1': 'the server’s policy doesn’t allow it',
  '7.26': 'the email failed SPF, DKIM or DMARC',
}

/** Returns the last two parts of the enhanced status code in a rejection, or ''. Ignores IP addresses. */
const codeIn = (detail: string): string =>
  /(?<![\d.])[45]\.(\d{1,3}\.\d{1,3})(?!\.?\d)/.exec(detail)?.[1] ?? ''

/** Returns the meaning of the enhanced status code in a rejection, or '' if it is missing or unknown. */
export const meaningIn = (detail: string): string => MEANINGS[codeIn(detail)] ?? ''

/** True if a rejection means that its address can't receive any email. */
export const isAddressRejected = (detail: string): boolean => /^(1\.\d+|2\.1)$/.test(codeIn(detail))

const SENTENCES: Readonly<Record<string, string>> = {
  sent: 'Accepted by the mail server. Nothing has been reported since.',
  delivered: 'Delivered to the recipient’s mail server.',
  opened: 'Delivered and opened.',
  clicked: 'Delivered, and a link in it was clicked.',
  complained: 'The recipient reported it as spam.',
}

const ENDS: Readonly<Record<EmailEnd, string>> = {
  skipped: 'Not sent, because its recipient is suppressed.',
  expired: 'Not sent. It expired.',
  failed: 'Failed, with no attempts left.',
}

/** @param ended how it ended, if it was never sent. */
export function queuedSentence(
  waiting: { state: string; last_response?: string | null } | undefined,
  ended?: EmailEnd,
): string {
  if (waiting?.state === 'scheduled') return 'Scheduled for later.'
  if (ended) return ENDS[ended]
  if (waiting?.state === 'failed') return ENDS.failed
  if (waiting?.state === 'in_flight') return 'Being sent now.'
  if (waiting?.state === 'deferred' && waiting.last_response)
    return 'Deferred by the server. It is attempted again automatically.'
  return 'Waiting to be sent.'
}

/** @param ended how it ended, if it was never sent. */
export function emailSentence(email: ShownEmail, ended?: EmailEnd): string {
  const { status, events, waiting } = email
  if (ended === 'skipped' && everyone(email).length > 1)
    return 'Not sent, because its recipients are suppressed.'
  if (ended === 'skipped') return ENDS.skipped
  if (status === 'bounced') {
    const bounce = events.findLast(({ kind }) => kind === 'bounced')
    const meaning = meaningIn(bounce?.detail ?? '')
    const whose = everyone(email).length > 1 && bounce?.recipient ? ` for ${bounce.recipient}` : ''
    return meaning === '' ? `Bounced${whose}.` : `Bounced${whose}: ${meaning}.`
  }
  if (status === 'queued') return queuedSentence(waiting, ended)
  return SENTENCES[status] ?? ''
}

/** Why a failed event isn't attempted again. */
const WEBHOOK_ENDS: Readonly<Record<WebhookEnd, string>> = {
  disabled: ', because the webhook was disabled',
  gone: ', because the server returned 410',
  rejected: ', because the server rejected it',
  exhausted: ', with no attempts left',
}

export function webhookSentence({
  status: word,
  attempts,
  events,
}: Pick<ShownWebhook, 'status' | 'attempts' | 'events'>): string {
  const isMissed = attempts.length === 0 && events.at(-1)?.detail === DISABLED
  if (word === 'failed' && isMissed) return 'Not sent: the webhook was disabled.'
  if (word === 'delivered') return `Delivered after ${plural(attempts.length, 'attempt')}.`
  if (word === 'failed') {
    const end = findWebhookEnd(attempts.at(-1)?.status ?? null, events.at(-1)?.detail === DISABLED)
    return `Failed after ${plural(attempts.length, 'attempt')}${WEBHOOK_ENDS[end]}.`
  }
  return attempts.length === 0
    ? 'Waiting to be sent.'
    : `Attempted ${plural(attempts.length, 'time')}. Waiting for the next attempt.`
}
