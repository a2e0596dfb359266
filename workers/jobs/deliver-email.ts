/**
 * Hands queued emails to the provider and records what became of each.
 * Promises: reads a batch in one query and holds no connection while it sends; rows, events and finished jobs are
 * settled in one transaction, which outlasts a short absence of the database; a row that the provider has taken is not
 * sent again; only recipients that were put off are tried again; sends go at the sender's pace, and what has to
 * wait for it loses no attempt. Given up after 24 h of tries (decisions: refused for now). Must not know a
 * provider's words.
 */

import { type AttemptRecord, applyEmailEvents } from '../../db/emails/apply-events.ts'
import { sizeKb } from '../../db/emails/content.ts'
import { emailsToDeliver, type OutgoingRow } from '../../db/emails/emails.sql.ts'
import type { EmailEvent } from '../../db/emails/events.sql.ts'
import { emailGaveUp } from '../../db/emails/give-up.ts'
import { returnPath } from '../../db/emails/return-path.ts'
import type { EmailEventKind } from '../../db/emails/status.ts'
import type { Log } from '../../db/process/log.ts'
import { type FetchedJob, putOff, type Settlement } from '../../db/queue/boss.ts'
import { DELIVERY_DEADLINE } from '../../db/queue/jobs.ts'
import type { Sender } from '../../db/senders/pace.ts'
import { storableWords } from '../../db/text/words.ts'
import type { WorkerDeps } from '../deps.ts'
import { dkimKeysOf } from '../dkim-keys.ts'
import { insist } from '../insist.ts'
import { applyPace, NOT_BEGUN, paceBatch, runPaced } from '../pace.ts'
import type { EmailDelivery, EmailProvider, Outcome, OutgoingEmail } from '../providers/provider.ts'
import { recipientsOf, renderEmail } from '../render.ts'

type DeliveryJob = FetchedJob<'deliver-email'>
type Ready = { job: DeliveryJob; row: OutgoingRow }

/** One row at one attempt and what the provider made of it; `html` is null when it could not even be rendered. */
type Attempt = Ready & { html: string | null; delivery: EmailDelivery }

const EVENT_OF: Record<Outcome['kind'], EmailEventKind> = {
  accepted: 'sent',
  refused: 'bounced',
  policy: 'bounced',
  deferred: 'deferred',
  sender: 'deferred',
  unknown: 'unknown',
}

/** A row that has to be tried again, and why; `wait_seconds` when it is known for how long that is no use. */
type Unfinished = Ready & { reason: string; wait_seconds?: number }

/** Works on one fetched batch. Jobs whose row needs nothing more are completed along with the others. */
export async function deliverEmails(jobs: DeliveryJob[], deps: WorkerDeps): Promise<Settlement[]> {
  const { database, email: provider, slots, clock } = deps
  if (!provider) throw new Error('there is no email provider here')
  const refs = jobs.map((job) => job.data)
  const rows = new Map((await emailsToDeliver(database, refs)).map((row) => [row.id, row]))
  const ready = jobs.flatMap((job): Ready[] => {
    const row = rows.get(job.data.email_id)
    return row ? [{ job, row }] : []
  })
  const sender = await provider.sender()
  const paced = await paceBatch(database, sender, ready, {
    costOf: ({ row }) => recipientsOf(row).length,
    now: clock(),
  })
  const going = paced.going.map(({ item }) => item.row)
  const compose = await composer(going, provider.signs, deps)
  const { sent: attempts, late } = await runPaced(paced, {
    sender,
    slots,
    clock,
    send: (item) => attempt(item, { compose, provider, log: deps.log }),
    outcomesOf: ({ delivery }) => delivery.outcomes.values(),
  })
  const { reason, wait_seconds } = paced
  const refused = attempts.flatMap(unfinishedOf)
  const unfinished = [
    ...paced.held.map((item): Unfinished => ({ ...item, reason, wait_seconds })),
    ...late.map((item): Unfinished => ({ ...item, reason: NOT_BEGUN, wait_seconds: 1 })),
    ...refused,
  ]
  const again = new Map(unfinished.map((each) => [each.job.id, each]))
  const now = clock()
  const done = jobs.filter(({ id }) => !again.has(id))
  const overdue = refused.filter(({ row }) => isOverdue(row, now))
  const snoozed = unfinished.filter((each) => !overdue.includes(each) && each.wait_seconds !== undefined)
  await insist(
    async () =>
      await record({ attempts, overdue, done, snoozed, sender, booked_at: paced.booked_at, now }, deps),
    deps.log,
  )
  const ends = { overdue, snoozed }
  return jobs.map(({ id }) => settlementOf(id, again.get(id), ends))
}

function settlementOf(
  id: string,
  again: Unfinished | undefined,
  { overdue, snoozed }: { overdue: readonly Unfinished[]; snoozed: readonly Unfinished[] },
): Settlement {
  if (!again) return { id, status: 'completed' }
  if (snoozed.includes(again)) return putOff(id)
  return {
    id,
    status: overdue.includes(again) ? 'deadletter' : 'failed',
    output: { reason: again.reason },
  }
}

/**
 * Makes what turns a row into its message: one query each for the templates' versions and for the domains' keys.
 * @param signed whether our keys are to sign it.
 */
async function composer(
  rows: readonly OutgoingRow[],
  signed: boolean,
  { database, versions, secrets, return_domain }: WorkerDeps,
): Promise<(row: OutgoingRow) => OutgoingEmail> {
  const compiled = await versions(
    database,
    rows.flatMap(({ team_id, template_version_id: id }) => (id === null ? [] : [{ team_id, id }])),
  )
  const keys = await dkimKeysOf(database, secrets, signed ? rows : [])
  return (row) => {
    const dkim = keys.get(row.domain_id) ?? null
    if (dkim instanceof Error) throw dkim
    const returnPathAt = (domain: string) => returnPath(secrets, row, return_domain ?? domain)
    return renderEmail(row, compiled.get(row.template_version_id ?? ''), { dkim, returnPathAt })
  }
}

/** One try. What cannot be rendered is put off like what the provider puts off: mended, it still goes. */
async function attempt(
  { job, row }: Ready,
  {
    compose,
    provider,
    log,
  }: { compose: (row: OutgoingRow) => OutgoingEmail; provider: EmailProvider; log: Log },
): Promise<Attempt> {
  let email: OutgoingEmail
  try {
    email = compose(row)
  } catch (error) {
    log.error({ err: error, email_id: row.id }, 'cannot render this email')
    const detail = storableWords(`the email could not be rendered: ${(error as Error).message}`)
    const outcomes = new Map(
      recipientsOf(row).map((to): [string, Outcome] => [to, { kind: 'deferred', detail }]),
    )
    return { job, row, html: null, delivery: { provider_message_id: null, outcomes } }
  }
  return { job, row, html: email.html, delivery: await provider.send(email) }
}

/** Whether a recipient is to be tried again: put off, or without an answer. */
const isPending = (outcome: Outcome) => /^(deferred|sender|unknown)$/.test(outcome.kind)

const pendingOf = ({ delivery }: Attempt): string[] =>
  [...delivery.outcomes].flatMap(([recipient, outcome]) => (isPending(outcome) ? [recipient] : []))

/** Whether someone else's fate is already decided: then only the pending ones are tried again. */
const isPartial = ({ row, delivery }: Attempt, pending: readonly string[]): boolean =>
  row.pending_recipients !== null || pending.length < delivery.outcomes.size

/** What is left to do of an attempt; the longest wait that the provider named counts. */
function unfinishedOf({ job, row, delivery }: Attempt): Unfinished[] {
  const pending = [...delivery.outcomes.values()].filter(isPending)
  const [first] = pending
  if (first === undefined) return []
  const waits = pending.flatMap((outcome) => ('wait_seconds' in outcome ? (outcome.wait_seconds ?? []) : []))
  const reason = first.detail
  return [{ job, row, reason, ...(waits.length === 0 ? {} : { wait_seconds: Math.max(...waits) }) }]
}

const since = (row: OutgoingRow): string => row.requeued_at ?? row.created_at

/** Whether it has been tried for long enough. What only had to wait, for a worker or for its sender, has not been. */
const isOverdue = ({ tried_since }: OutgoingRow, now: Date): boolean =>
  tried_since !== null && now.getTime() - Date.parse(tried_since) > DELIVERY_DEADLINE

function eventsOf({ row, delivery }: Attempt, now: Date): EmailEvent[] {
  return [...delivery.outcomes].map(([recipient, outcome]) => ({
    team_id: row.team_id,
    email_id: row.id,
    event_key: `attempt:${now.toISOString()}:${recipient}`,
    kind: EVENT_OF[outcome.kind],
    recipient,
    occurred_at: now,
    detail: outcome.detail,
    effect: outcome.kind === 'refused' ? outcome.effect : 'none',
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
      emailGaveUp({ team_id: row.team_id, email_id: row.id, since: since(row) }, reason, now),
    )
    const events = [...attempts.flatMap((attempt) => eventsOf(attempt, now)), ...given_up]
    await applyEmailEvents(tx, events, now, attempts.map(recordOf))
    if (done.length > 0) await queue.complete(tx, 'deliver-email', done)
    for (const [seconds, again] of Map.groupBy(snoozed, ({ wait_seconds }) => wait_seconds ?? 0)) {
      await queue.snooze(
        tx,
        'deliver-email',
        again.map(({ job }) => job),
        seconds,
      )
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
    seen: attempt.row,
    size_kb: attempt.html === null ? null : sizeKb(attempt.html),
  }
}
