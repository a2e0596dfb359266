/** The queries behind requeueing and giving up: rows that wait without a job, and rows that the queue gave up on. */
import { sql } from 'slonik'
import { object, string } from 'yup'
import { deadLetterOf } from '../../jobs.ts'
import type { Tx } from '../../pool.ts'
import { type EmailRef, refTuples } from '../table.ts'

const refRow = object({ team_id: string().defined(), email_id: string().defined() })

/** Emails accepted before `before` that are still queued, oldest first: candidates for the sweep. */
export async function staleEmails(tx: Tx, before: Date, limit: number): Promise<readonly EmailRef[]> {
  return await tx.any(sql.type(refRow)`
    select team_id, id as email_id from emails
    where status = 'queued' and created_at < ${sql.timestamp(before)}
      and coalesce(requeued_at, created_at) < ${sql.timestamp(before)}
    order by created_at limit ${limit}`)
}

/** Marks rows that are still undelivered as requeued. @returns those it found. */
export async function markRequeued(
  tx: Tx,
  refs: readonly EmailRef[],
  now: Date,
): Promise<readonly EmailRef[]> {
  return await tx.any(sql.type(refRow)`
    update emails set requeued_at = ${sql.timestamp(now)}
    where (team_id, id) in (select * from ${refTuples(refs)} as ref (team_id, id))
      and status = 'queued' and provider_message_id is null
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
  return await tx.any(sql.type(givenUpRow)`
    select e.team_id, e.id as email_id, coalesce(e.requeued_at, e.created_at) as since,
      d.source_output ->> 'reason' as reason
    from pgboss.job d join emails e on e.team_id = (d.data ->> 'team_id')::uuid and e.id = d.source_id
    where d.name = ${deadLetterOf('deliver-email')} and d.state < 'active'
      and not exists (
        select from email_events v
        where v.team_id = e.team_id and v.email_id = e.id and v.kind = 'gave_up'
          and v.occurred_at >= coalesce(e.requeued_at, e.created_at))
    order by d.created_on limit ${limit}`)
}
