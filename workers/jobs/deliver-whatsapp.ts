/**
 * Hands queued WhatsApp messages to the provider and records what became of each.
 * Promises: reads a batch in one query and holds no connection while it sends; rows, events and finished jobs are
 * settled in one transaction; a message that the provider has taken is not sent again; after an unknown outcome a
 * report may come before any second try; what waits for the number's pace or a pause loses no attempt. Given up after
 * 24 h of tries; what waits for a number or an account that is paused waits for as long as that lasts. The
 * provider's answer only stores its id: the status moves by reports (contract §3.3). Must not know a provider's
 * words.
 */

import type { Tx } from '../../db/postgres/pool.ts'
import { type FetchedJob, putOff, type Settlement } from '../../db/queue/boss.ts'
import { DELIVERY_DEADLINE } from '../../db/queue/jobs.ts'
import type { Sender } from '../../db/senders/pace.ts'
import { pauseRecipients, type RecipientPause } from '../../db/senders/senders.sql.ts'
import { type AppliedEvent, applyWhatsappEvents } from '../../db/whatsapp/apply-events.ts'
import { messageGaveUp } from '../../db/whatsapp/give-up.ts'
import { messagesToDeliver, type OutgoingRow } from '../../db/whatsapp/messages.sql.ts'
import type { WhatsappEventKind } from '../../db/whatsapp/status.ts'
import { recordFindings, type TemplateFinding } from '../../db/whatsapp/templates.sql.ts'
import type { WorkerDeps } from '../deps.ts'
import { insist } from '../insist.ts'
import { applyPace, paceBatch, runPaced, withoutPaused } from '../pace.ts'
import type { OutgoingWhatsapp, WhatsappDelivery, WhatsappOutcome } from '../providers/whatsapp.ts'

type DeliveryJob = FetchedJob<'deliver-whatsapp'>
type Ready = { job: DeliveryJob; row: OutgoingRow }
type Attempt = Ready & { outcome: WhatsappOutcome }

/** A job's end: over, to be tried again with a growing pause, given up, or put off without counting an attempt. */
type Verdict = { job: DeliveryJob } & (
  | { end: 'completed' }
  | { end: 'failed' | 'deadletter'; reason: string }
  | { end: 'snoozed'; seconds: number }
)

type Batch = { attempts: readonly Attempt[]; verdicts: readonly Verdict[]; booked_at: Date; now: Date }

const EVENT_OF: Record<WhatsappOutcome['kind'], WhatsappEventKind> = {
  accepted: 'accepted',
  refused: 'failed',
  deferred: 'deferred',
  sender: 'deferred',
  unknown: 'unknown',
}
/** What a slowed number's message waits; its pace then decides. In seconds. */
const SLOWED_WAIT = 5
/** The longest that messages to one recipient are put off at a time, in seconds. */
const LONGEST_PAIR_WAIT = 1_800
/** A pause may be lifted early: its messages look again this often, in seconds. */
const LONGEST_WAIT = 60

/** Works on one fetched batch. Jobs whose row needs nothing more are completed along with the others. */
export async function deliverWhatsapp(jobs: DeliveryJob[], deps: WorkerDeps): Promise<Settlement[]> {
  const { whatsapp, database } = deps
  if (!whatsapp) throw new Error('there is no WhatsApp provider here')
  const { provider } = whatsapp
  const refs = jobs.map((job) => job.data)
  const rows = new Map((await messagesToDeliver(database, refs)).map((row) => [row.message_id, row]))
  const ready = jobs.flatMap((job): Ready[] => {
    const row = rows.get(job.data.message_id)
    return row ? [{ job, row }] : []
  })
  const { free, resting } = await withoutPaused(database, provider.sender, ready, {
    recipientOf: ({ row }) => row.recipient,
    now: deps.clock(),
  })
  const paced = await paceBatch(database, provider.sender, free, { costOf: () => 1, now: deps.clock() })
  const { sent: attempts, late } = await runPaced(paced, {
    sender: provider.sender,
    slots: deps.slots,
    clock: deps.clock,
    send: async ({ job, row }) => ({ job, row, outcome: await provider.send(outgoing(row)) }),
    outcomesOf: ({ outcome }) => [outcome],
  })
  const now = deps.clock()
  const verdicts = [
    ...jobs
      .filter(({ data }) => !rows.has(data.message_id))
      .map((job): Verdict => ({ job, end: 'completed' })),
    ...paced.held.map(({ job }): Verdict => snoozed(job, paced.wait_seconds)),
    ...late.map(({ job }): Verdict => snoozed(job, 1)),
    ...resting.map(({ item, seconds }): Verdict => ({ job: item.job, end: 'snoozed', seconds })),
    ...attempts.map((attempt) => verdictOf(attempt, whatsapp.unknown_wait, now)),
  ]
  await insist(
    () => record({ attempts, verdicts, booked_at: paced.booked_at, now }, whatsapp, deps),
    deps.log,
  )
  return verdicts.map(settlement)
}

/** The recipients that the provider has put off, each for as long as its message. */
const pausesOf = (sender: Sender, { attempts, verdicts, now }: Batch): RecipientPause[] => {
  const ends = new Map(verdicts.map((verdict) => [verdict.job.id, verdict]))
  return attempts.flatMap(({ job, row, outcome }) => {
    const ofRecipient = outcome.kind === 'deferred' && outcome.wait_seconds !== undefined
    const end = ends.get(job.id)
    if (!ofRecipient || end?.end !== 'snoozed') return []
    const paused_until = new Date(now.getTime() + end.seconds * 1_000)
    return [{ sender: sender.key, recipient: row.recipient, paused_until, reason: outcome.detail }]
  })
}

/** A row with its template as the message to send. A slot that the template has gained since is left empty. */
function outgoing(row: OutgoingRow): OutgoingWhatsapp {
  const { slots, parameters, url_buttons } = row
  const valuesOf = (scope: string): string[] =>
    slots.filter((slot) => slot.startsWith(`${scope}:`)).map((slot) => parameters[slot] ?? '')
  return {
    team_id: row.team_id,
    message_id: row.message_id,
    to: row.recipient,
    template: { name: row.name, language: row.language },
    header: valuesOf('header'),
    body: valuesOf('body'),
    url_buttons: valuesOf('url').map((value, index) => ({ place: url_buttons[index] ?? 0, value })),
  }
}

const snoozed = (job: DeliveryJob, seconds: number): Verdict => ({
  job,
  end: 'snoozed',
  seconds: Math.min(seconds, LONGEST_WAIT),
})

function verdictOf({ job, row, outcome }: Attempt, unknown_wait: number, now: Date): Verdict {
  if (outcome.kind === 'accepted' || outcome.kind === 'refused') return { job, end: 'completed' }
  const { detail: reason } = outcome
  // A pause of the number or the account is nobody's fault among its messages: they wait, however long it takes.
  if (outcome.kind === 'sender') return snoozed(job, outcome.wait_seconds ?? SLOWED_WAIT)
  const tried = row.tried_since === null ? 0 : now.getTime() - Date.parse(row.tried_since)
  if (tried > DELIVERY_DEADLINE) return { job, end: 'deadletter', reason }
  if (outcome.kind === 'unknown') return { job, end: 'snoozed', seconds: unknown_wait }
  if (outcome.wait_seconds === undefined) return { job, end: 'failed', reason }
  const growing = outcome.wait_seconds * 2 ** Math.min(row.deferrals, 16)
  return { job, end: 'snoozed', seconds: Math.min(growing, LONGEST_PAIR_WAIT) }
}

function settlement(verdict: Verdict): Settlement {
  const { id } = verdict.job
  if (verdict.end === 'failed' || verdict.end === 'deadletter') {
    return { id, status: verdict.end, output: { reason: verdict.reason } }
  }
  return verdict.end === 'snoozed' ? putOff(id) : { id, status: 'completed' }
}

/** What the timeline says of an attempt; waits for the whole number are told once an hour. */
function eventsOf({ row, outcome }: Attempt, verdict: Verdict | undefined, now: Date): AppliedEvent[] {
  const { team_id, message_id } = row
  const at = now.toISOString()
  const wide = outcome.kind === 'sender'
  const event = {
    ...{ team_id, message_id, kind: EVENT_OF[outcome.kind], occurred_at: now, detail: outcome.detail },
    event_key: wide ? `waits:${at.slice(0, 13)}` : `attempt:${at}`,
    provider_message_id: outcome.kind === 'accepted' ? outcome.provider_message_id : null,
  }
  if (verdict?.end !== 'deadletter') return [event]
  const since = row.requeued_at ?? row.created_at
  const end = messageGaveUp({ team_id, message_id, since }, outcome.detail, now)
  return [event, { ...end, provider_message_id: null }]
}

const findingsOf = (attempts: readonly Attempt[]): TemplateFinding[] => {
  const findings = new Map<string, TemplateFinding>()
  for (const { row, outcome } of attempts) {
    if (outcome.kind !== 'refused' || !outcome.template) continue
    const { team_id, template_id } = row
    const status = outcome.template.status ?? findings.get(template_id)?.status ?? null
    findings.set(template_id, { team_id, template_id, status, fault: outcome.detail })
  }
  return [...findings.values()].sort((one, other) => (one.template_id < other.template_id ? -1 : 1))
}

/** Stores what a batch brought, and settles the jobs that are done with or put off, in one transaction. */
async function record(
  { attempts, verdicts, booked_at, now }: Batch,
  { provider }: WhatsappDelivery,
  deps: WorkerDeps,
): Promise<void> {
  const verdictBy = new Map(verdicts.map((verdict) => [verdict.job.id, verdict]))
  const events = attempts.flatMap((attempt) => eventsOf(attempt, verdictBy.get(attempt.job.id), now))
  const findings = findingsOf(attempts)
  const pauses = pausesOf(provider.sender, { attempts, verdicts, booked_at, now })
  const deferred = attempts.flatMap(({ outcome }) => (outcome.kind === 'sender' ? [outcome] : []))
  await deps.database.transaction(async (tx) => {
    await applyWhatsappEvents(tx, events)
    if (findings.length > 0) await recordFindings(tx, findings, now)
    await settleJobs(tx, verdicts, deps)
    if (pauses.length > 0) await pauseRecipients(tx, pauses)
    await applyPace(tx, provider.sender, deferred, { booked_at, now, log: deps.log })
  })
  for (const { template_id, status, fault } of findings) {
    deps.log.warn({ template_id, status, fault }, 'the provider finds fault with a template')
  }
}

async function settleJobs(tx: Tx, verdicts: readonly Verdict[], { queue }: WorkerDeps): Promise<void> {
  const done = verdicts.filter(({ end }) => end === 'completed').map(({ job }) => job)
  if (done.length > 0) await queue.complete(tx, 'deliver-whatsapp', done)
  const put_off = verdicts.filter((verdict) => verdict.end === 'snoozed')
  for (const seconds of new Set(put_off.map((verdict) => verdict.seconds))) {
    const jobs = put_off.filter((verdict) => verdict.seconds === seconds).map(({ job }) => job)
    await queue.snooze(tx, 'deliver-whatsapp', jobs, seconds)
  }
}
