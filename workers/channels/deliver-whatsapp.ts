/**
 * Reads, sends and records WhatsApp messages. Sending uses no database connection. A message that the provider has
 * accepted isn't sent again. Waiting for the recipient's rate limit uses no attempt. The provider's response only
 * stores its ID; reports change the status.
 */

import type { Channel } from '../../db/channels/channel.sql.ts'
import { WHATSAPP } from '../../db/channels/whatsapp.sql.ts'
import type { Sender } from '../../db/delivery/senders/rate-limit.ts'
import {
  pauseRecipients,
  type RecipientPause,
  recipientPauses,
} from '../../db/delivery/senders/senders.sql.ts'
import { triedSince } from '../../db/delivery/tried-since.sql.ts'
import { type AppliedEvent, applyWhatsappEvents } from '../../db/messages/whatsapp/apply-events.ts'
import {
  type MessageRef,
  messagesToDeliver,
  type OutgoingWhatsappRow,
} from '../../db/messages/whatsapp/messages.sql.ts'
import { listForms } from '../../db/messages/whatsapp/number-forms.ts'
import { OPTED_OUT, optedOutAmong } from '../../db/messages/whatsapp/opt-outs.ts'
import type { WhatsappEventKind } from '../../db/messages/whatsapp/status.ts'
import { recordFindings, type TemplateFinding } from '../../db/messages/whatsapp/templates.sql.ts'
import type { Database, Tx } from '../../db/postgres/pool.ts'
import type { Log } from '../../db/process/log.ts'
import type { Secrets } from '../../db/process/secrets.ts'
import { impersonal, storableId, storableWords } from '../../db/validation/words.ts'
import type { Delivered, DeliveryChannel, Outgoing } from '../delivery/channel.ts'
import { nextStep } from '../delivery/retry-policy.ts'
import {
  defaultSender,
  type OutgoingWhatsapp,
  type WhatsappDelivery,
  type WhatsappOutcome,
} from '../providers/whatsapp/provider.ts'
import { contentOf } from './whatsapp-content.ts'

export type WhatsappDeps = { database: Database; whatsapp: WhatsappDelivery; secrets: Secrets; log: Log }

export type WhatsappAttempt = { row: OutgoingWhatsappRow; sender: string; outcome: WhatsappOutcome }

/** A message without its number's credentials, which `send` of its source adds. */
type Draft<T extends boolean> = Omit<OutgoingWhatsapp<T>, 'number'>

/** A row with its sender, and the function that sends it from its own number. */
export type Sendable<T extends boolean> = {
  row: OutgoingWhatsappRow<T>
  sender: Sender
  /** How long it waits for its number, in seconds. */
  wait_seconds?: number
  given_up?: string
  send(draft: Draft<T>, cut: AbortSignal): Promise<WhatsappOutcome>
}

type Source<T extends boolean> = {
  unknown_wait: number
  senders: DeliveryChannel<WhatsappJob, WhatsappAttempt>['senders']
  read(tx: Tx, refs: readonly MessageRef[]): Promise<readonly Sendable<T>[]>
}

/** The timeline's event for an outcome. Null if it concerns the number or account, whose timeline has it. */
const EVENT_OF: Record<WhatsappOutcome['kind'], WhatsappEventKind | null> = {
  accepted: 'accepted',
  refused: 'failed',
  deferred: 'deferred',
  sender: null,
  unknown: 'unknown',
}
/** A recipient's pause may be lifted early, so its messages check again this often, in seconds. */
const MAX_RECIPIENT_PAUSE_S = 60

export function ofDefaultNumber<J extends 'deliver-whatsapp' | 'deliver-whatsapp-parts'>(
  channel: Channel<J>,
  { whatsapp, ...deps }: WhatsappDeps,
): DeliveryChannel<J, WhatsappAttempt> {
  if (!whatsapp.number) throw new Error('this worker has no default WhatsApp number')
  const { provider, unknown_wait, number } = whatsapp
  const sender = defaultSender(number)
  return whatsappThrough<J, false>(
    channel,
    {
      unknown_wait,
      senders: { one: async () => sender },
      read: async (tx, refs) =>
        (await messagesToDeliver(tx, refs)).map((row) => ({
          row,
          sender,
          send: (draft, cut) => provider.send({ ...draft, number }, cut),
        })),
    },
    deps,
  )
}

export const whatsappChannel = (deps: WhatsappDeps): DeliveryChannel<'deliver-whatsapp', WhatsappAttempt> =>
  ofDefaultNumber(WHATSAPP, deps)

type WhatsappJob =
  | 'deliver-whatsapp'
  | 'deliver-whatsapp-parts'
  | 'deliver-whatsapp-number'
  | 'deliver-test-whatsapp'

export function whatsappThrough<J extends WhatsappJob, T extends boolean>(
  channel: Channel<J>,
  { unknown_wait, senders, read }: Source<T>,
  { database, secrets, log }: Omit<WhatsappDeps, 'whatsapp'>,
): DeliveryChannel<J, WhatsappAttempt> {
  return {
    channel,
    unknown_wait,
    senders,
    async read(jobs) {
      const found = await read(
        database,
        jobs.map(({ data }) => data),
      )
      const keys = new Map(found.map(({ row, sender }) => [row.message_id, sender.key]))
      const tried = found.map(({ row }) => ({ ...row, id: row.message_id }))
      const recipients = [...new Set(found.map(({ row }) => row.recipient))]
      const isOptedOut = async (rows: readonly OutgoingWhatsappRow<T>[]) =>
        optedOutAmong({ tx: database, secrets }, rows.filter(isMarketing))
      const [since, pauses, optedOut] = await Promise.all([
        triedSince(database, { job: channel.job, senderOf: ({ id }) => keys.get(id) ?? '' }, tried),
        recipients.length === 0 ? [] : recipientPauses(database, recipients),
        isOptedOut(found.map(({ row }) => row)),
      ])
      const rests = new Map(
        pauses.map(({ sender, recipient, seconds }) => [`${sender} ${recipient}`, Math.ceil(seconds)]),
      )
      const out = new Set([...optedOut].map(({ message_id }) => message_id))
      const asks: Asks<T> = {
        outcomeOf: (row) => (out.has(row.message_id) ? NO_MARKETING : ofTemplate(row)),
        isOptedOut: async (row) => isMarketing(row) && (await isOptedOut([row])).size > 0,
      }
      const byId = new Map(found.map((each) => [each.row.message_id, each]))
      return new Map(
        jobs.flatMap((job) => {
          const each = byId.get(job.data.message_id)
          if (!each) return []
          const { row, sender } = each
          const rest = rests.get(`${sender.key} ${row.recipient}`) ?? 0
          const tried_since = since.get(row.message_id) ?? null
          return [[job, toOutgoing(each, { ...asks, tried_since, rest })]]
        }),
      )
    },
    judge: (attempt) => attempt,
    outcomesOf: ({ outcome }) => [outcome],
    verdict: (attempt, history, context) =>
      isOfPausedTemplate(attempt.outcome)
        ? { end: 'snoozed', seconds: MAX_RECIPIENT_PAUSE_S }
        : nextStep([attempt.outcome], history, context),
    record: (tx, delivered) => record(tx, delivered, log),
  }
}

type Asks<T extends boolean> = {
  /** Returns the outcome if it is known without calling the provider, otherwise null. */
  outcomeOf(row: OutgoingWhatsappRow): WhatsappOutcome | null
  isOptedOut(row: OutgoingWhatsappRow<T>): Promise<boolean>
}

const NO_MARKETING: WhatsappOutcome = { kind: 'refused', detail: OPTED_OUT }

const isMarketing = ({ category }: Pick<OutgoingWhatsappRow, 'category'>): boolean =>
  category?.toUpperCase() === 'MARKETING'

/** Returns the outcome of a message whose template is unusable. Null for others. */
const ofTemplate = ({
  template_status: status,
  own_template,
}: OutgoingWhatsappRow): WhatsappOutcome | null =>
  own_template && (status === 'disabled' || status === 'rejected')
    ? { kind: 'refused', detail: `the template is ${status}` }
    : null

/** How long a message with a paused template waits before it checks again. */
const templateWait = ({ template_status: status, own_template }: OutgoingWhatsappRow): number =>
  own_template && status === 'paused' ? MAX_RECIPIENT_PAUSE_S : 0

function toOutgoing<T extends boolean>(
  { row, sender, wait_seconds = 0, given_up, send }: Sendable<T>,
  { outcomeOf, isOptedOut, tried_since, rest }: Asks<T> & { tried_since: string | null; rest: number },
): Outgoing<WhatsappAttempt> {
  const { team_id, message_id: id, deferrals, unknowns } = row
  const outcome = outcomeOf(row)
  const answeredBy = (given: WhatsappOutcome): WhatsappAttempt => ({
    row,
    sender: sender.key,
    outcome: given,
  })
  return {
    ref: { team_id, id },
    http_request_id: row.http_request_id,
    since: row.since,
    history: { since: tried_since, deferrals, unknowns },
    held_at: null,
    expires_at: row.expires_at === null ? null : new Date(row.expires_at),
    sender,
    cost: 1,
    own_wait_seconds: Math.max(wait_seconds, templateWait(row), Math.min(rest, MAX_RECIPIENT_PAUSE_S)),
    ...(given_up === undefined ? {} : { given_up }),
    ...(outcome ? { answered: answeredBy(outcome) } : {}),
    // An opt-out that was stored since the row was read still counts.
    send: async (cut) =>
      answeredBy((await isOptedOut(row)) ? NO_MARKETING : storable(await send(draft(row), cut))),
  }
}

/** Makes an adapter's result storable. A sent message must be recorded whatever text the provider returned. */
function storable(outcome: WhatsappOutcome): WhatsappOutcome {
  const stored = { ...outcome, detail: storableWords(outcome.detail) }
  return stored.kind === 'accepted'
    ? { ...stored, provider_message_id: storableId(stored.provider_message_id) }
    : stored
}

const draft = <T extends boolean>(row: OutgoingWhatsappRow<T>): Draft<T> => ({
  test: row.test,
  deferrals: row.deferrals,
  team_id: row.team_id,
  message_id: row.message_id,
  to: row.recipient,
  template: { name: row.name, language: row.language },
  ...contentOf(row),
})

/** Stores rows and events of attempts, template states that they reveal, and the pauses of their recipients. */
async function record(tx: Tx, delivered: readonly Delivered<WhatsappAttempt>[], log: Log): Promise<void> {
  await applyWhatsappEvents(tx, delivered.flatMap(toEvents))
  const findings = toFindings(delivered)
  const newest = new Date(Math.max(...delivered.map(({ at }) => at.getTime())))
  if (findings.length > 0) await recordFindings(tx, findings, newest)
  const pauses = delivered.flatMap(toPauses)
  if (pauses.length > 0) await pauseRecipients(tx, pauses)
  for (const { template_id, status, fault } of findings) {
    log.warn({ template_id, status, fault: impersonal(fault) }, 'provider rejected a template')
  }
}

const isOfPausedTemplate = (outcome: WhatsappOutcome): boolean =>
  outcome.kind === 'deferred' && outcome.template?.status === 'paused'

function toEvents({ answer: { row, outcome }, at }: Delivered<WhatsappAttempt>): AppliedEvent[] {
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

function toFindings(delivered: readonly Delivered<WhatsappAttempt>[]): TemplateFinding[] {
  const findings = new Map<string, TemplateFinding>()
  for (const { row, outcome } of delivered.map(({ answer }) => answer)) {
    if ((outcome.kind !== 'refused' && outcome.kind !== 'deferred') || !outcome.template) continue
    if (!row.own_template) continue
    const { team_id, template_id } = row
    const status = outcome.template.status ?? findings.get(template_id)?.status ?? null
    findings.set(template_id, { team_id, template_id, status, fault: outcome.detail })
  }
  return [...findings.values()].sort((one, other) => (one.template_id < other.template_id ? -1 : 1))
}

/** Pauses a recipient that the provider deferred for as long as its message waits. */
function toPauses({
  answer: { row, sender, outcome },
  end,
  at,
}: Delivered<WhatsappAttempt>): RecipientPause[] {
  if (outcome.kind !== 'deferred' || outcome.wait_seconds === undefined || end.end !== 'again') return []
  const paused_until = new Date(at.getTime() + end.seconds * 1_000)
  return listForms(row.recipient).map((recipient) => ({
    ...{ sender, recipient, paused_until },
    reason: outcome.detail,
  }))
}
