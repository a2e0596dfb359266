/**
 * Computes how long messages have been attempted, without the pauses of senders, queues, teams, bulk email and
 * broadcasts.
 */
import { sql } from 'slonik'
import { object, string } from 'yup'
import type { DeliveryJob, DeliveryRef } from '../channels/channel.sql.ts'
import type { Tx } from '../postgres/pool.ts'
import { row, rowsOf } from '../postgres/rows.ts'
import { PART_OF } from '../queue/jobs.ts'

const TRIED = {
  ...{ id: 'uuid', team_id: 'uuid', sender: 'text', since: 'timestamptz', broadcast: 'uuid' },
  template: 'uuid',
}
const sinceRow = row({ id: string(), tried_since: string() })

type Tried = DeliveryRef & {
  tried_since: string | null
  broadcast_id?: string | null
  template_id?: string | null
}

/**
 * Returns when the attempts of messages started, shifted by the pauses of their sender, queue, team or broadcast.
 * Overlapping pauses count once.
 * @returns the times by ID, without messages that were never attempted.
 */
export async function triedSince<M extends Tried>(
  tx: Tx,
  { job, senderOf }: { job: DeliveryJob; senderOf: (message: M) => string },
  messages: readonly M[],
): Promise<Map<string, string>> {
  const tried = messages.flatMap((message) => {
    const { team_id, id, tried_since: since, broadcast_id: broadcast = null } = message
    const { template_id: template = null } = message
    return since === null ? [] : [{ id, team_id, sender: senderOf(message), since, broadcast, template }]
  })
  if (tried.length === 0) return new Map()
  const rows = await tx.any(sql.prepared('tried_since', sinceRow)`
    select t.id, t.since + coalesce(stood.still, interval '0') as tried_since
    from ${rowsOf('t', TRIED, tried)}
      cross join (select service_time() as now offset 0) clock
      cross join lateral (
        select sum(upper(piece) - lower(piece)) as still
        from (
          select range_agg(tstzrange(greatest(s.began_at, t.since), least(s.ended_at, clock.now))) as pieces
          from pause_history s
          where s.subject in (${`queue:${PART_OF.get(job) ?? job}`}, ${`queue:${job}`}, 'sender:' || t.sender, 'team:' || t.team_id,
              'broadcast:' || t.broadcast, 'bulk:' || t.team_id, 'number:' || t.sender,
              'template:' || t.template)
            and (s.subject <> 'bulk:' || t.team_id or exists (
              select from accepted_emails a where a.team_id = t.team_id and a.id = t.id and a.batch))
            and s.ended_at > t.since and s.began_at < clock.now and t.since < clock.now) all_of_them,
          unnest(pieces) as piece) stood`)
  return new Map(rows.map(({ id, tried_since }) => [id, tried_since]))
}

export const deletePauseHistory = (tx: Tx, before: Date) =>
  tx.query(sql.type(object())`delete from pause_history where ended_at < ${sql.timestamp(before)}`)
