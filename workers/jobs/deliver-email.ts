/**
 * Hands queued emails to the provider and records what became of each.
 * Promises: reads a batch in one query and holds no connection while it sends; rows, events and finished jobs are
 * settled in one transaction; a row that the provider has taken is not sent again; only recipients that were put
 * off are tried again; sends go at the sender's pace, and what has to wait for it loses no attempt. Given up after
 * 24 h (decisions: refused for now). Must not know a provider's words.
 */
import { sizeKb } from '../../db/emails/content.ts'
import { gaveUp } from '../../db/emails/give-up.ts'
import { applyEmailEvents } from '../../db/emails/report.ts'
import { returnPath } from '../../db/emails/return-path.ts'
import type { EmailEventKind } from '../../db/emails/status.ts'
import {
  type AttemptRecord,
  type EmailEvent,
  type EmailRow,
  emailsToDeliver,
  recordAttempts,
} from '../../db/emails/table.ts'
import { DELIVERY_DEADLINE } from '../../db/jobs.ts'
import type { FetchedJob, Settlement } from '../../db/queue.ts'
import type { Sender } from '../../db/senders/pace.ts'
import type { WorkerDeps } from '../deps.ts'
import { dkimKeysOf } from '../dkim-keys.ts'
import { applyPace, paceBatch, runPaced } from '../pace.ts'
import type { EmailDelivery, Outcome, OutgoingEmail } from '../providers/provider.ts'
import { renderEmail } from '../render.ts'

type DeliveryJob = FetchedJob<'deliver-email'>

/** One row at one attempt: what was sent and what the provider made of it. */
type Attempt = { job: DeliveryJob; row: EmailRow; email: OutgoingEmail; delivery: EmailDelivery }

const EVENT_OF: Record<Outcome['kind'], EmailEventKind> = {
  accepted: 'sent',
  refused: 'bounced',
  deferred: 'deferred',
  unknown: 'unknown',
}

/** A row that has to be tried again, and why; `wait_seconds` when it is known for how long that is no use. */
type Unfinished = { job: DeliveryJob; row: EmailRow; reason: string; wait_seconds?: number }

/** Works on one fetched batch. Jobs whose row needs nothing more are completed along with the others. */
export async function deliverEmails(jobs: DeliveryJob[], deps: WorkerDeps): Promise<Settlement[]> {
  const { ready, broken } = await composeBatch(jobs, deps)
  const sender = await deps.email.sender()
  const paced = await paceBatch(deps.database, sender, ready, {
    costOf: ({ email }) => email.recipients.length,
    now: deps.clock(),
  })
  const { sent: attempts, late } = await runPaced(paced, {
    sender,
    slots: deps.slots,
    clock: deps.clock,
    send: async ({ job, row, email }) => ({ job, row, email, delivery: await deps.email.send(email) }),
    outcomesOf: ({ delivery }) => delivery.outcomes.values(),
  })
  const held = paced.held.map(({ job, row }): Unfinished => {
    return { job, row, reason: paced.reason, wait_seconds: paced.wait_seconds }
  })
  const unbegun = late.map(({ job, row }): Unfinished => {
    return { job, row, reason: 'the worker was busy', wait_seconds: 1 }
  })
  const again = new Map(
    [...broken, ...held, ...unbegun, ...attempts.flatMap(unfinishedOf)].map((each) => [each.job.id, each]),
  )
  const now = deps.clock()
  const done = jobs.filter(({ id }) => !again.has(id))
  const overdue = [...again.values()].filter(({ row }) => isOverdue(row, now))
  const snoozed = [...again.values()].filter((each) => !overdue.includes(each))
  await record({ attempts, overdue, done, snoozed, sender, booked_at: paced.booked_at, now }, deps)
  return jobs.map(({ id }): Settlement => {
    const retry = again.get(id)
    if (!retry) return { id, status: 'completed' }
    // For a job that was snoozed this settles nothing: it has ended, and its successor is not this attempt.
    return {
      id,
      status: overdue.includes(retry) ? 'deadletter' : 'failed',
      output: { reason: retry.reason },
    }
  })
}

/** The batch's rows that are still to be delivered, rendered: one query each for rows, new versions and keys. */
async function composeBatch(jobs: readonly DeliveryJob[], deps: WorkerDeps) {
  const { database, versions, secrets, log } = deps
  const rows = await emailsToDeliver(
    database,
    jobs.map((job) => job.data),
  )
  const compiled = await versions(
    database,
    rows.flatMap(({ team_id, template_version_id: id }) => (id === null ? [] : [{ team_id, id }])),
  )
  const keys = await dkimKeysOf(database, secrets, rows)
  const byId = new Map(rows.map((row) => [row.id, row]))
  const ready: { job: DeliveryJob; row: EmailRow; email: OutgoingEmail }[] = []
  const broken: Unfinished[] = []
  for (const job of jobs) {
    const row = byId.get(job.data.email_id)
    if (!row) continue
    try {
      const version = compiled.get(row.template_version_id ?? '')
      const dkim = keys.get(row.domain_id) ?? null
      if (dkim instanceof Error) throw dkim
      const returnPathAt = (domain: string) => returnPath(secrets, row, deps.return_domain ?? domain)
      ready.push({ job, row, email: renderEmail(row, version, { dkim, returnPathAt }) })
    } catch (error) {
      log.error({ err: error, email_id: row.id }, 'cannot render this email')
      broken.push({ job, row, reason: 'the email could not be rendered' })
    }
  }
  return { ready, broken }
}

/** Recipients to try again: put off, or without an answer. */
const pendingOf = ({ delivery }: Attempt): string[] =>
  [...delivery.outcomes].flatMap(([recipient, { kind }]) =>
    kind === 'deferred' || kind === 'unknown' ? [recipient] : [],
  )

/** Whether someone else's fate is already decided: then only the pending ones are tried again. */
const isPartial = ({ row, delivery }: Attempt, pending: readonly string[]): boolean =>
  row.pending_recipients !== null || pending.length < delivery.outcomes.size

/** What is left to do of an attempt; the longest wait that the provider named counts. */
function unfinishedOf(attempt: Attempt): Unfinished[] {
  const outcomes = [...attempt.delivery.outcomes.values()]
  if (pendingOf(attempt).length === 0) return []
  const waits = outcomes.flatMap((outcome) =>
    outcome.kind === 'deferred' && outcome.wait_seconds !== undefined ? [outcome.wait_seconds] : [],
  )
  const reason = outcomes.find(({ kind }) => kind !== 'accepted')?.detail ?? ''
  const { job, row } = attempt
  return [{ job, row, reason, ...(waits.length === 0 ? {} : { wait_seconds: Math.max(...waits) }) }]
}

const since = (row: EmailRow): string => row.requeued_at ?? row.created_at

const isOverdue = (row: EmailRow, now: Date): boolean =>
  now.getTime() - new Date(since(row)).getTime() > DELIVERY_DEADLINE

function eventsOf({ email, delivery }: Attempt, now: Date): EmailEvent[] {
  return [...delivery.outcomes].map(([recipient, outcome]) => ({
    team_id: email.team_id,
    email_id: email.email_id,
    event_key: `attempt:${now.toISOString()}:${recipient}`,
    kind: EVENT_OF[outcome.kind],
    recipient,
    occurred_at: now,
    detail: outcome.detail,
    effect: outcome.kind === 'refused' && outcome.suppress ? 'hard' : 'none',
  }))
}

type Batch = {
  attempts: readonly Attempt[]
  overdue: readonly Unfinished[]
  done: readonly DeliveryJob[]
  snoozed: readonly Unfinished[]
  sender: Sender
  booked_at: Date
  now: Date
}

/** Stores what a batch brought, and settles the jobs that are done with or put off, in one transaction. */
async function record(
  { attempts, overdue, done, snoozed, sender, booked_at, now }: Batch,
  { database, queue, log }: WorkerDeps,
): Promise<void> {
  const outcomes = attempts.flatMap(({ delivery }) => [...delivery.outcomes.values()])
  await database.transaction(async (tx) => {
    // The events come first: they lock the rows in the order that everyone does.
    const given_up = overdue.map(({ row, reason }) =>
      gaveUp({ team_id: row.team_id, email_id: row.id, since: since(row) }, reason, now),
    )
    await applyEmailEvents(tx, [...attempts.flatMap((attempt) => eventsOf(attempt, now)), ...given_up], now)
    if (attempts.length > 0) await recordAttempts(tx, attempts.map(recordOf))
    if (done.length > 0) await queue.complete(tx, 'deliver-email', done)
    for (const [seconds, again] of Map.groupBy(snoozed, ({ wait_seconds }) => wait_seconds)) {
      const put_off = again.map(({ job }) => job)
      if (seconds !== undefined) await queue.snooze(tx, 'deliver-email', put_off, seconds)
    }
    await applyPace(tx, sender, outcomes, { booked_at, now, log })
  })
}

function recordOf(attempt: Attempt): AttemptRecord {
  const pending = pendingOf(attempt)
  return {
    team_id: attempt.row.team_id,
    email_id: attempt.row.id,
    provider_message_id: attempt.delivery.provider_message_id,
    pending_recipients: pending.length > 0 && isPartial(attempt, pending) ? pending : null,
    size_kb: sizeKb(attempt.email.html),
  }
}
