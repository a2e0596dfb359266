/**
 * WhatsApp messages on their way out: how they are read, sent and recorded; the delivery engine does the rest.
 * Promises: reads many rows in a few statements and holds no connection while it sends; a message that the provider
 * has taken is not sent again; what waits for its recipient's pace loses no try. The provider's answer only stores its
 * id: the status moves by reports. Must not know a provider's words.
 */

import type { Channel } from '../../db/channels/channel.sql.ts'
import { WHATSAPP } from '../../db/channels/whatsapp.sql.ts'
import {
  pauseRecipients,
  type RecipientPause,
  recipientPauses,
} from '../../db/delivery/senders/senders.sql.ts'
import { triedSince } from '../../db/delivery/tried-since.sql.ts'
import { type AppliedEvent, applyWhatsappEvents } from '../../db/messages/whatsapp/apply-events.ts'
import { messagesToDeliver, type OutgoingWhatsappRow } from '../../db/messages/whatsapp/messages.sql.ts'
import { OPTED_OUT, optedOutAmong } from '../../db/messages/whatsapp/opt-outs.ts'
import type { WhatsappEventKind } from '../../db/messages/whatsapp/status.ts'
import { recordFindings, type TemplateFinding } from '../../db/messages/whatsapp/templates.sql.ts'
import type { Database, Tx } from '../../db/postgres/pool.ts'
import type { Log } from '../../db/process/log.ts'
import type { Secrets } from '../../db/process/secrets.ts'
import { impersonal, storableId, storableWords } from '../../db/validation/words.ts'
import type { Delivered, DeliveryChannel, Outgoing } from '../delivery/channel.ts'
import { verdictOf } from '../delivery/retry-policy.ts'
import type {
  OutgoingWhatsapp,
  WhatsappDelivery,
  WhatsappOutcome,
  WhatsappSending,
} from '../providers/whatsapp/provider.ts'
import { contentOf } from './whatsapp-content.ts'

/** What the channel needs. `whatsapp` null: it is not set up here, and the worker leaves its queue alone. */
export type WhatsappDeps = {
  database: Database
  whatsapp: WhatsappDelivery | null
  secrets: Pick<Secrets, 'signatures'>
  log: Log
}

/** One row at one try and what the provider made of it. */
export type WhatsappAttempt = { row: OutgoingWhatsappRow; outcome: WhatsappOutcome }

/** The timeline's event for an outcome; null when it is about the number or account, whose own timeline has it. */
const EVENT_OF: Record<WhatsappOutcome['kind'], WhatsappEventKind | null> = {
  accepted: 'accepted',
  refused: 'failed',
  deferred: 'deferred',
  sender: null,
  unknown: 'unknown',
}
/** A recipient's pause may be lifted early: its messages look again this often, in seconds. */
const MAX_RECIPIENT_PAUSE_S = 60

export function whatsappChannel({
  whatsapp,
  ...deps
}: WhatsappDeps): DeliveryChannel<'deliver-whatsapp', WhatsappAttempt> {
  if (!whatsapp) throw new Error('there is no WhatsApp provider here')
  return whatsappThrough(WHATSAPP, whatsapp, deps)
}

type WhatsappJob = 'deliver-whatsapp' | 'deliver-test-whatsapp'

/** How a worker delivers WhatsApp messages, those of live teams or those of test teams. */
export function whatsappThrough<J extends WhatsappJob, T extends boolean>(
  channel: Channel<J>,
  { provider, unknown_wait }: { provider: WhatsappSending<T>; unknown_wait: number },
  deps: Omit<WhatsappDeps, 'whatsapp'>,
): DeliveryChannel<J, WhatsappAttempt> {
  const { database } = deps
  const { key } = provider.sender
  return {
    channel,
    unknown_wait,
    senders: { one: async () => provider.sender },
    async read(jobs) {
      const rows = await messagesToDeliver(
        database,
        jobs.map(({ data }) => data),
        provider.test,
      )
      const tried = rows.map((row) => ({ ...row, id: row.message_id }))
      const since = await triedSince(database, { job: channel.job, senderOf: () => key }, tried)
      const byId = new Map(tried.map((row) => [row.id, { ...row, tried_since: since.get(row.id) ?? null }]))
      const recipients = [...new Set(rows.map(({ recipient }) => recipient))]
      const pauses = recipients.length === 0 ? [] : await recipientPauses(database, recipients)
      const rests = new Map(
        pauses.filter(({ sender }) => sender === key).map((pause) => [pause.recipient, pause.seconds]),
      )
      const restOf = (recipient: string): number => Math.ceil(rests.get(recipient) ?? 0)
      const isOptedOut = async (rows: readonly OutgoingWhatsappRow<T>[]) =>
        optedOutAmong({ tx: database, secrets: deps.secrets }, rows.filter(isMarketing))
      const out = new Set([...(await isOptedOut(rows))].map(({ message_id }) => message_id))
      const asks: Asks<T> = {
        provider,
        outcomeOf: (row) => (out.has(row.message_id) ? NO_MARKETING : ofTemplate(row)),
        isOptedOut: async (row) => isMarketing(row) && (await isOptedOut([row])).size > 0,
      }
      return new Map(
        jobs.flatMap((job) => {
          const row = byId.get(job.data.message_id)
          return row ? [[job, outgoingOf(row, asks, restOf(row.recipient))]] : []
        }),
      )
    },
    judge: (attempt) => attempt,
    outcomesOf: ({ outcome }) => [outcome],
    verdict: (attempt, history, context) =>
      isOfPausedTemplate(attempt.outcome)
        ? { end: 'snoozed', seconds: MAX_RECIPIENT_PAUSE_S }
        : verdictOf([attempt.outcome], history, context),
    record: (tx, delivered) => record(tx, delivered, { key, log: deps.log }),
  }
}

type Asks<T extends boolean> = {
  provider: WhatsappSending<T>
  /** What becomes of a message without asking the provider; null if it is asked. */
  outcomeOf(row: OutgoingWhatsappRow): WhatsappOutcome | null
  isOptedOut(row: OutgoingWhatsappRow<T>): Promise<boolean>
}

const NO_MARKETING: WhatsappOutcome = { kind: 'refused', detail: OPTED_OUT }

const isMarketing = ({ category }: Pick<OutgoingWhatsappRow, 'category'>): boolean =>
  category?.toUpperCase() === 'MARKETING'

/** What becomes of a message whose template can't be used any more; null of others. */
const ofTemplate = ({ template_status: status }: OutgoingWhatsappRow): WhatsappOutcome | null =>
  status === 'disabled' || status === 'rejected'
    ? { kind: 'refused', detail: `the template is ${status}` }
    : null

/** How long a message waits whose template is paused, before it looks again. */
const templateWait = ({ template_status: status }: OutgoingWhatsappRow): number =>
  status === 'paused' ? MAX_RECIPIENT_PAUSE_S : 0

function outgoingOf<T extends boolean>(
  row: OutgoingWhatsappRow<T>,
  { provider, outcomeOf, isOptedOut }: Asks<T>,
  rest: number,
): Outgoing<WhatsappAttempt> {
  const { team_id, message_id: id, deferrals, unknowns, tried_since } = row
  const outcome = outcomeOf(row)
  return {
    ref: { team_id, id },
    http_request_id: row.http_request_id,
    since: row.since,
    history: { since: tried_since, deferrals, unknowns },
    held_at: null,
    expires_at: row.expires_at === null ? null : new Date(row.expires_at),
    sender: provider.sender,
    cost: 1,
    own_wait_seconds: Math.max(templateWait(row), Math.min(rest, MAX_RECIPIENT_PAUSE_S)),
    ...(outcome ? { answered: { row, outcome } } : {}),
    // The last moment: an opt-out that was stored since the row was read counts.
    send: async (cut) =>
      (await isOptedOut(row))
        ? { row, outcome: NO_MARKETING }
        : { row, outcome: storable(await provider.send(message(row), cut)) },
  }
}

/** Whatever an adapter hands over can be stored: what was sent must never go unrecorded for the words about it. */
function storable(outcome: WhatsappOutcome): WhatsappOutcome {
  const stored = { ...outcome, detail: storableWords(outcome.detail) }
  return stored.kind === 'accepted'
    ? { ...stored, provider_message_id: storableId(stored.provider_message_id) }
    : stored
}

/** A row with its template as the message to send. */
const message = <T extends boolean>(row: OutgoingWhatsappRow<T>): OutgoingWhatsapp<T> => ({
  test: row.test,
  deferrals: row.deferrals,
  team_id: row.team_id,
  message_id: row.message_id,
  to: row.recipient,
  template: { name: row.name, language: row.language },
  ...contentOf(row),
})

/** Stores rows and events of tries, what they say of templates, and the pauses of their recipients. */
async function record(
  tx: Tx,
  delivered: readonly Delivered<WhatsappAttempt>[],
  { key, log }: { key: string; log: WhatsappDeps['log'] },
): Promise<void> {
  await applyWhatsappEvents(tx, delivered.flatMap(eventsOf))
  const findings = findingsOf(delivered)
  const newest = new Date(Math.max(...delivered.map(({ at }) => at.getTime())))
  if (findings.length > 0) await recordFindings(tx, findings, newest)
  const pauses = delivered.flatMap((each) => pausesOf(key, each))
  if (pauses.length > 0) await pauseRecipients(tx, pauses)
  for (const { template_id, status, fault } of findings) {
    log.warn({ template_id, status, fault: impersonal(fault) }, 'the provider finds fault with a template')
  }
}

/** Whether the message waits for its template: that is no attempt that counts. */
const isOfPausedTemplate = (outcome: WhatsappOutcome): boolean =>
  outcome.kind === 'deferred' && outcome.template?.status === 'paused'

function eventsOf({ answer: { row, outcome }, at }: Delivered<WhatsappAttempt>): AppliedEvent[] {
  const kind = isOfPausedTemplate(outcome) ? 'held' : EVENT_OF[outcome.kind]
  if (kind === null) return []
  const { team_id, message_id } = row
  return [
    {
      team_id,
      message_id,
      event_key: `attempt:${at.toISOString()}`,
      kind,
      occurred_at: at,
      detail: outcome.detail,
      code: outcome.code ?? null,
      ...(outcome.kind === 'accepted'
        ? { provider_message_id: outcome.provider_message_id, wa_id: outcome.wa_id ?? null }
        : {}),
    },
  ]
}

function findingsOf(delivered: readonly Delivered<WhatsappAttempt>[]): TemplateFinding[] {
  const findings = new Map<string, TemplateFinding>()
  for (const { row, outcome } of delivered.map(({ answer }) => answer)) {
    if ((outcome.kind !== 'refused' && outcome.kind !== 'deferred') || !outcome.template) continue
    const { team_id, template_id } = row
    const status = outcome.template.status ?? findings.get(template_id)?.status ?? null
    findings.set(template_id, { team_id, template_id, status, fault: outcome.detail })
  }
  return [...findings.values()].sort((one, other) => (one.template_id < other.template_id ? -1 : 1))
}

/** A recipient that the provider has put off is paused for as long as its message. */
function pausesOf(
  sender: string,
  { answer: { row, outcome }, end, at }: Delivered<WhatsappAttempt>,
): RecipientPause[] {
  if (outcome.kind !== 'deferred' || outcome.wait_seconds === undefined || end.end !== 'again') return []
  const paused_until = new Date(at.getTime() + end.seconds * 1_000)
  return [{ sender, recipient: row.recipient, paused_until, reason: outcome.detail }]
}
