/**
 * Queries for scheduled messages, which have a `due_at` and no job. None is released early, or from a restored copy.
 */
import { sql } from 'slonik'
import { number, object, string } from 'yup'
import { hasStartedPass } from '../accounts/teams/resumed.sql.ts'
import { isSuspended } from '../accounts/teams/teams.sql.ts'
import { type Channel, type Deliverable, type DeliveryRef, REF } from '../channels/channel.sql.ts'
import { CHANNELS } from '../channels/channels.sql.ts'
import type { Tx } from '../postgres/pool.ts'
import { nameRow, refRow, row, rowsOf } from '../postgres/rows.ts'
import { SHARED_JOBS } from '../queue/jobs.ts'
import { RESTORED } from '../queue/pauses.sql.ts'

/** The name for teams that were resumed, next to the names of channels. */
const RESUMED = 'resumed'

/**
 * Returns the channels with due messages, except those paused by a restore, and whether messages of resumed teams need
 * their jobs. One statement, because every worker runs it every two seconds.
 */
export async function whatIsDue(tx: Tx): Promise<{ channels: readonly Channel[]; resumed: boolean }> {
  // The first one, because searching for any due one would scan the rows while none is due.
  const looks = CHANNELS.map(
    ({ name, rows, job }) => sql.fragment`
      select ${name}::text as name
      where (select min(due_at) from ${rows}) <= (select service_time())
        and not exists (select from paused_queues where queue = ${job} and reason = ${RESTORED})`,
  )
  const resumed = sql.fragment`select ${RESUMED}::text as name where ${hasStartedPass}`
  const found = await tx.anyFirst(sql.prepared('what_is_due', nameRow)`
    select name from (${sql.join([...looks, resumed], sql.fragment` union all `)}) due where is_at_home()`)
  return { channels: CHANNELS.filter(({ name }) => found.includes(name)), resumed: found.includes(RESUMED) }
}

const releasedRow = refRow.concat(row({ job: string().oneOf(SHARED_JOBS), sender: string().nullable() }))

/**
 * Releases up to `most` due messages, shared between teams. Their attempts and deadline start to count. Teams are
 * found one by one in an index. Rows locked by other transactions are skipped, and those of suspended teams stay.
 * @returns the messages that need a job now.
 */
export const releaseDue = (tx: Tx, { rows, job_of, sender_of, queued_again }: Channel, most: number) =>
  tx.any(sql.type(releasedRow)`
    with recursive clock as materialized (
      select service_time() as now where is_at_home()
    ), team as (
      (select team_id, due_at from ${rows} where due_at is not null order by team_id, due_at limit 1)
      union all
      select n.* from team t cross join lateral (
        select team_id, due_at from ${rows} where due_at is not null and team_id > t.team_id
        order by team_id, due_at limit 1) n
    ), due as materialized (
      select t.team_id, c.now, (${most} + count(*) over () - 1) / count(*) over () as share
      from team t join clock c on t.due_at <= c.now and not ${isSuspended(sql.fragment`t.team_id`)}
      order by t.due_at, t.team_id limit ${most}
    ), picked (of_team, of_id) as materialized (
      select r.team_id, r.id from due d cross join lateral (
        select team_id, id from ${rows} where team_id = d.team_id and due_at <= d.now
        order by due_at limit d.share for no key update skip locked) r
      limit ${most}
    )
    update ${rows} m set due_at = null, tries_from = due_at ${queued_again ?? sql.fragment``}
    from picked where m.team_id = of_team and m.id = of_id
    returning m.team_id, m.id, ${job_of} as job, ${sender_of} as sender`)

const dueRow = row({ due_at: string().nullable(), scheduled_at: string().nullable() })

/** Locks a message, and returns its times, or null. `due_at` is set while it waits. */
export const lockDue = (tx: Tx, { rows }: Channel, { team_id, id }: DeliveryRef) =>
  tx.maybeOne(sql.type(dueRow)`
    select due_at, scheduled_at from ${rows} where team_id = ${team_id} and id = ${id} for update`)

/** Moves a locked message to another time. A past time means now. Its expiry moves by the same amount. */
export async function moveDue(
  tx: Tx,
  { rows }: Channel,
  { team_id, id }: DeliveryRef,
  { to, now }: { to: Date; now: Date },
): Promise<void> {
  const due = sql.fragment`greatest(${sql.timestamp(to)}, ${sql.timestamp(now)})`
  await tx.query(sql.type(object())`
    update ${rows} set scheduled_at = ${sql.timestamp(to)}, due_at = ${due}, expires_at = expires_at + (${due} - due_at)
    where team_id = ${team_id} and id = ${id}`)
}

/** @returns the waiting messages that have expired and were failed. */
export const markExpired = (tx: Tx, { rows }: Deliverable, refs: readonly DeliveryRef[], at: Date) =>
  tx.any(sql.type(refRow)`
    with held (of_team, of_id) as materialized (
      select team_id, id from ${rows}
      where (team_id, id) in (select * from ${rowsOf('ref', REF, refs)}) and unfinished
      order by team_id, id for no key update
    )
    update ${rows} m set expired_at = ${sql.timestamp(at)}
    from held where m.team_id = of_team and m.id = of_id returning m.team_id, m.id`)

const ofTeamRow = row({ messages: number(), next: string().nullable() })

/** Counts a team's scheduled messages, up to `most`, and returns the first of their times. */
export const scheduledOfTeam = (tx: Tx, teamId: string, { rows, customers }: Channel, most: number) =>
  tx.one(sql.type(ofTeamRow)`
    select count(*) as messages, min(due_at) as next from (
      select due_at from ${rows} where team_id = ${teamId} and due_at is not null and ${customers}
      order by due_at limit ${most}) due`)
