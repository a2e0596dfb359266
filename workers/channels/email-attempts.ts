/**
 * Records attempts to deliver emails: their events, and the remaining recipients. Suppressed recipients get an event
 * and aren't sent to the provider.
 */
import { recordRejectedReturnPaths } from '../../db/accounts/domains/domains.sql.ts'
import { type AttemptRecord, applyEmailEvents } from '../../db/messages/emails/apply-events.ts'
import { sizeKb } from '../../db/messages/emails/content.ts'
import type { EmailEvent } from '../../db/messages/emails/events.sql.ts'
import { keepDates, type OutgoingRow } from '../../db/messages/emails/outgoing.sql.ts'
import type { EmailEventKind } from '../../db/messages/emails/status.ts'
import type { Tx } from '../../db/postgres/pool.ts'
import { parseMailbox } from '../../db/validation/address.ts'
import type { Delivered } from '../delivery/channel.ts'
import type { EmailDelivery, Outcome } from '../providers/provider.ts'
import type { Suppressed } from './suppressed-recipients.ts'

/** A row at one attempt, and the provider's result. `html` is null if rendering failed. */
export type EmailAttempt = {
  row: OutgoingRow
  html: string | null
  delivery: EmailDelivery
  suppressed: Suppressed
}

/** The timeline's event for an outcome. Null if it concerns the sender, whose timeline has it. */
const EVENT_OF: Record<Outcome['kind'], EmailEventKind | null> = {
  accepted: 'sent',
  refused: 'bounced',
  policy: 'held',
  deferred: 'deferred',
  sender: null,
  unknown: 'unknown',
}
/** Stores rows and events of attempts. Events come first, because they lock the rows in the usual order. */
export async function recordAttempts(
  tx: Tx,
  delivered: readonly Delivered<EmailAttempt>[],
  sentCountsMs?: number,
): Promise<void> {
  const eventful = delivered.filter((each) => toEvents(each).length > 0)
  const newest = new Date(Math.max(...eventful.map(({ at }) => at.getTime())))
  const attempts = eventful.map(({ answer }) => toRecord(answer))
  await applyEmailEvents(tx, eventful.flatMap(toEvents), newest, attempts, { sentCountsMs })
  const late = eventful.flatMap(({ answer: { row, delivery } }) =>
    row.dated_at !== null && ![...delivery.outcomes.values()].every(isDecided)
      ? [{ team_id: row.team_id, id: row.id, dated_at: row.dated_at }]
      : [],
  )
  if (late.length > 0) await keepDates(tx, late)
  const rejected = delivered.flatMap(({ answer: { row, delivery } }) =>
    delivery.rejected_return_path === undefined
      ? []
      : [
          {
            ...{ team_id: row.team_id, name: parseMailbox(row.from_address)?.domain ?? '' },
            response: delivery.rejected_return_path,
          },
        ],
  )
  if (rejected.length > 0) await recordRejectedReturnPaths(tx, rejected, newest)
}

/** Makes one event per suppressed recipient, however many attempts there are before a requeue. */
const leftOut = ({ answer: { row, suppressed }, at }: Delivered<EmailAttempt>): EmailEvent[] =>
  [...suppressed].map(([recipient, detail]) => ({
    ...{ team_id: row.team_id, email_id: row.id, event_key: `suppressed:${row.since}:${recipient}` },
    ...{ kind: 'suppressed', recipient, occurred_at: at, detail },
  }))

function toEvents(delivered: Delivered<EmailAttempt>): EmailEvent[] {
  const {
    answer: { row, delivery },
    at,
  } = delivered
  const tried = [...delivery.outcomes].flatMap(([recipient, outcome]): EmailEvent[] => {
    const kind = EVENT_OF[outcome.kind]
    if (kind === null) return []
    const event: EmailEvent = {
      team_id: row.team_id,
      email_id: row.id,
      event_key: `attempt:${at.toISOString()}:${recipient}`,
      kind,
      recipient,
      occurred_at: at,
      detail: outcome.detail,
      effect: outcome.kind === 'refused' ? outcome.effect : 'none',
    }
    if (outcome.kind !== 'accepted' || !outcome.delivered) return [event]
    const event_key = `${event.event_key}:delivered`
    return [event, { ...event, event_key, kind: 'delivered', effect: 'delivered' }]
  })
  return [...leftOut(delivered), ...tried]
}

const isDecided = ({ kind }: Outcome): boolean => kind === 'accepted' || kind === 'refused'

/**
 * Returns the record of an attempt. Once the results of some recipients are final, the row stores the remaining ones.
 * It also does so if the response was lost for only some recipients, so that a report about these doesn't end the
 * email for the others.
 */
function toRecord({ row, html, delivery, suppressed }: EmailAttempt): AttemptRecord {
  const outcomes = [...delivery.outcomes]
  const pending = outcomes.flatMap(([to, outcome]) => (isDecided(outcome) ? [] : [to]))
  const unknown = outcomes.filter(([, { kind }]) => kind === 'unknown').length
  const isPartial =
    row.pending_recipients !== null ||
    suppressed.size > 0 ||
    pending.length < outcomes.length ||
    (unknown > 0 && unknown < pending.length)
  return {
    team_id: row.team_id,
    email_id: row.id,
    provider_message_id: delivery.provider_message_id,
    pending_recipients: pending.length > 0 && isPartial ? pending : null,
    undecided: pending,
    is_suppressed: suppressed.size > 0 && outcomes.length === 0 && row.provider_message_id === null,
    seen: row,
    size_kb: html === null ? null : sizeKb(html),
  }
}
