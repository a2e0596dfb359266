/**
 * Hands queued emails to the provider and records what became of each.
 * Promises: reads a batch in one query and holds no connection while it sends; rows, events and finished jobs are
 * settled in one transaction; a row that the provider has taken is not sent again; only recipients that were put
 * off are tried again. Given up after 24 h (decisions: refused for now). Must not know a provider's words.
 */
import { sizeKb } from '../../db/emails/content.ts'
import { gaveUp } from '../../db/emails/give-up.ts'
import { applyEmailEvents } from '../../db/emails/report.ts'
import { returnPath } from '../../db/emails/return-path.ts'
import type { EmailEventKind } from '../../db/emails/status.ts'
import { type EmailEvent, type EmailRow, emailsToDeliver, recordAttempts } from '../../db/emails/table.ts'
import { DELIVERY_DEADLINE } from '../../db/jobs.ts'
import type { FetchedJob, Settlement } from '../../db/queue.ts'
import { dkimKeysOf } from '../dkim-keys.ts'
import type { EmailDelivery, Outcome, OutgoingEmail } from '../providers/provider.ts'
import type { WorkerDeps } from '../registry.ts'
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

/** A row that cannot be made into a message; the others of its batch are not held up by it. */
type Broken = { job: DeliveryJob; row: EmailRow; reason: string }

/** Works on one fetched batch. Jobs whose row needs nothing more are completed along with the others. */
export async function deliverEmails(jobs: DeliveryJob[], deps: WorkerDeps): Promise<Settlement[]> {
  const { ready, broken } = await composeBatch(jobs, deps)
  const attempts = await Promise.all(
    ready.map(async ({ job, row, email }) => ({ job, row, email, delivery: await deps.email.send(email) })),
  )
  const waiting = attempts.flatMap((attempt): Broken[] =>
    pendingOf(attempt).length > 0 ? [{ job: attempt.job, row: attempt.row, reason: lastWords(attempt) }] : [],
  )
  const again = new Map([...broken, ...waiting].map((each) => [each.job.id, each]))
  const overdue = [...again.values()].filter(({ row }) => isOverdue(row, deps.clock()))
  await record(
    attempts,
    overdue,
    jobs.filter(({ id }) => !again.has(id)),
    deps,
  )
  return jobs.map(({ id }): Settlement => {
    const retry = again.get(id)
    if (!retry) return { id, status: 'completed' }
    const status = overdue.includes(retry) ? 'deadletter' : 'failed'
    return { id, status, output: { reason: retry.reason } }
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
  const broken: Broken[] = []
  for (const job of jobs) {
    const row = byId.get(job.data.email_id)
    if (!row) continue
    try {
      const version = compiled.get(row.template_version_id ?? '')
      const dkim = keys.get(row.domain_id) ?? null
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

const lastWords = ({ delivery }: Attempt): string =>
  [...delivery.outcomes.values()].find(({ kind }) => kind !== 'accepted')?.detail ?? ''

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

/** Stores what a batch brought, and completes the jobs that are done with, in one transaction. */
async function record(
  attempts: readonly Attempt[],
  overdue: readonly Broken[],
  done: readonly DeliveryJob[],
  deps: WorkerDeps,
): Promise<void> {
  const now = deps.clock()
  await deps.database.transaction(async (tx) => {
    const records = attempts.map((attempt) => {
      const pending = pendingOf(attempt)
      return {
        team_id: attempt.row.team_id,
        email_id: attempt.row.id,
        provider_message_id: attempt.delivery.provider_message_id,
        pending_recipients: pending.length > 0 && isPartial(attempt, pending) ? pending : null,
        size_kb: sizeKb(attempt.email.html),
      }
    })
    // The events come first: they lock the rows in the order that everyone does.
    const given_up = overdue.map(({ row, reason }) =>
      gaveUp({ team_id: row.team_id, email_id: row.id, since: since(row) }, reason, now),
    )
    await applyEmailEvents(tx, [...attempts.flatMap((attempt) => eventsOf(attempt, now)), ...given_up], now)
    if (records.length > 0) await recordAttempts(tx, records)
    if (done.length > 0) await deps.queue.complete(tx, 'deliver-email', done)
  })
}
