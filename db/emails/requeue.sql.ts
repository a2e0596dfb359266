/** The queries behind requeueing and giving up: rows that wait without a job, and rows that the queue gave up on. */
import { sql } from 'slonik'
import { object, string } from 'yup'
import type { Tx } from '../postgres/pool.ts'
import { withoutJob } from '../queue/jobs.sql.ts'
import { deadLetterOf } from '../queue/jobs.ts'
import { isSuspended, wasResumedSince } from '../teams/teams.sql.ts'
import { type EmailRef, refTuples, undelivered } from './emails.sql.ts'

const refRow = object({ team_id: string().defined(), email_id: string().defined() })

// Told since it was accepted or requeued last.
const gaveUp = sql.fragment`
  exists (
    select from email_events v
    where v.team_id = e.team_id and v.email_id = e.id and v.kind = 'gave_up'
      and v.occurred_at >= coalesce(e.requeued_at, e.created_at))`

/**
 * Emails accepted before `before` whose delivery is unfinished and has neither a job nor been given up, oldest first.
 * The limit counts these alone: however many wait or were given up, a lost one is found. What a suspended team has
 * waits on; once it may go on, all of it without a job counts as lost, however young.
 */
export async function lostEmails(tx: Tx, before: Date, limit: number): Promise<readonly EmailRef[]> {
  return tx.any(sql.type(refRow)`
    select team_id, id as email_id from emails e
    where ${undelivered} and not ${isSuspended(sql.fragment`e.team_id`)}
      and (created_at < ${sql.timestamp(before)} and coalesce(requeued_at, created_at) < ${sql.timestamp(before)}
        or ${wasResumedSince(sql.fragment`e.team_id`, sql.fragment`coalesce(e.requeued_at, e.created_at)`)})
      and ${withoutJob('deliver-email', sql.fragment`e.id`)} and not ${gaveUp}
    order by created_at limit ${limit}`)
}

/** Marks emails that are still to be delivered as requeued. @returns those it found. */
export async function markEmailsRequeued(
  tx: Tx,
  refs: readonly EmailRef[],
  now: Date,
): Promise<readonly EmailRef[]> {
  return tx.any(sql.type(refRow)`
    update emails set requeued_at = ${sql.timestamp(now)}
    where (team_id, id) in (select * from ${refTuples(refs)} as ref (team_id, id)) and ${undelivered}
    returning team_id, id as email_id`)
}

const givenUpRow = object({
  team_id: string().defined(),
  email_id: string().defined(),
  since: string().defined(),
  reason: string().defined().nullable(),
})

/** Emails whose delivery job is a dead letter that their timeline does not tell of yet, oldest first. */
export async function emailsGivenUp(tx: Tx, limit: number) {
  return tx.any(sql.type(givenUpRow)`
    select e.team_id, e.id as email_id, coalesce(e.requeued_at, e.created_at) as since,
      d.source_output ->> 'reason' as reason
    from pgboss.job d join emails e on e.team_id = (d.data ->> 'team_id')::uuid and e.id = d.source_id
    where d.name = ${deadLetterOf('deliver-email')} and d.state < 'active' and not ${gaveUp}
    order by d.created_on limit ${limit}`)
}
