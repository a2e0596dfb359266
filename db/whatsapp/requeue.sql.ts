/** The queries behind requeueing and giving up: rows that wait without a job, and rows that the queue gave up on. */
import { sql } from 'slonik'
import { object, string } from 'yup'
import type { Tx } from '../postgres/pool.ts'
import { withoutJob } from '../queue/jobs.sql.ts'
import { deadLetterOf } from '../queue/jobs.ts'
import { isSuspended, wasResumedSince } from '../teams/teams.sql.ts'
import { type MessageRef, refTuples } from './messages.sql.ts'

const refRow = object({ team_id: string().defined(), message_id: string().defined() })

// Told since it was accepted or requeued last.
const gaveUp = sql.fragment`
  exists (
    select from whatsapp_events v
    where v.team_id = m.team_id and v.message_id = m.id and v.kind = 'gave_up'
      and v.occurred_at >= coalesce(m.requeued_at, m.created_at))`

/**
 * Messages accepted before `before` that the provider has not taken, with neither a job nor word that they were given
 * up, oldest first. The limit counts these alone: however many wait or were given up, a lost one is found. What a
 * suspended team has waits on; once it may go on, all of it without a job counts as lost, however young.
 */
export async function lostMessages(tx: Tx, before: Date, limit: number): Promise<readonly MessageRef[]> {
  return tx.any(sql.type(refRow)`
    select team_id, id as message_id from whatsapp_messages m
    where status = 'queued' and accepted_at is null and not ${isSuspended(sql.fragment`m.team_id`)}
      and (created_at < ${sql.timestamp(before)} and coalesce(requeued_at, created_at) < ${sql.timestamp(before)}
        or ${wasResumedSince(sql.fragment`m.team_id`, sql.fragment`coalesce(m.requeued_at, m.created_at)`)})
      and ${withoutJob('deliver-whatsapp', sql.fragment`m.id`)} and not ${gaveUp}
    order by created_at limit ${limit}`)
}

const givenUpRow = object({
  team_id: string().defined(),
  message_id: string().defined(),
  since: string().defined(),
  reason: string().defined().nullable(),
})

/** Messages whose delivery job is a dead letter that their timeline does not tell of yet, oldest first. */
export async function messagesGivenUp(tx: Tx, limit: number) {
  return tx.any(sql.type(givenUpRow)`
    select m.team_id, m.id as message_id, coalesce(m.requeued_at, m.created_at) as since,
      d.source_output ->> 'reason' as reason
    from pgboss.job d
      join whatsapp_messages m on m.team_id = (d.data ->> 'team_id')::uuid and m.id = d.source_id
    where d.name = ${deadLetterOf('deliver-whatsapp')} and d.state < 'active' and not ${gaveUp}
    order by d.created_on limit ${limit}`)
}

/** Marks rows that are still undelivered as requeued. @returns those it found. */
export async function markMessagesRequeued(
  tx: Tx,
  refs: readonly MessageRef[],
  now: Date,
): Promise<readonly MessageRef[]> {
  return tx.any(sql.type(refRow)`
    update whatsapp_messages set requeued_at = ${sql.timestamp(now)}
    where (team_id, id) in (select * from ${refTuples(refs)} as ref (team_id, id))
      and status = 'queued' and accepted_at is null
    returning team_id, id as message_id`)
}
