/**
 * Claims jobs from a queue with groups, where each group has its own capacity. pg-boss would claim a batch of only
 * one group, and read all waiting jobs of full groups. This query reads one index entry per waiting group, and the
 * jobs it claims. Groups are served by the priority, then the due time, of the job that has been due longest. It is
 * text because it runs on pg-boss's own connections.
 */
import { hasLanesByGroup, type JobName } from './jobs.ts'
import type { Run } from './pgboss.sql.ts'

/** `of` contains the capacities of some groups, `others` that of every other group. */
export type Capacities = { of: ReadonlyMap<string, number>; others: number }

export type ClaimedRow = { id: string; data: unknown; retry_count: number }

/**
 * Claims up to `limit` due jobs. Not prepared, because a plan from when the queue was empty would later scan all
 * waiting jobs.
 */
export async function claimByGroup(run: Run, job: JobName, limit: number, { of, others }: Capacities) {
  // The same expression as in the index `lanes` (maintenance.sql.ts).
  const [group, order] = hasLanesByGroup(job)
    ? ["j.group_id || ''", 'j.priority desc, j.created_on']
    : ['j.group_id', 'j.start_after']
  const { rows } = await run(
    `with recursive heads (group_id, start_after, priority) as (
      (select group_id, start_after, priority from pgboss.job
        where name = $1 and state < 'active' and not blocked and group_id is not null
        order by group_id, start_after limit 1)
      union all
      select n.* from heads h cross join lateral (
        select j.group_id, j.start_after, j.priority from pgboss.job j
        where j.name = $1 and j.state < 'active' and not j.blocked and j.group_id > h.group_id
        order by j.group_id, j.start_after limit 1) n
    ), open as materialized (
      select h.group_id, coalesce(r.room, $4) as room
      from heads h left join unnest($2::text[], $3::int[]) as r (group_id, room) on r.group_id = h.group_id
      where h.start_after <= now() and coalesce(r.room, $4) > 0
      order by h.priority desc, h.start_after limit $5
    ), next as materialized (
      select n.id from open o cross join lateral (
        select j.id from pgboss.job j
        where j.name = $1 and j.state < 'active' and not j.blocked and ${group} = o.group_id
          and j.start_after <= now()
        order by ${order} limit o.room for update skip locked) n
      limit $5
    ), single as materialized (
      select id from pgboss.job
      where name = $1 and state < 'active' and not blocked and group_id is null and start_after <= now()
      order by start_after limit $5 - (select count(*) from next) for update skip locked
    )
    update pgboss.job j set state = 'active', started_on = now(), heartbeat_on = now(),
      retry_count = retry_count + case when started_on is null then 0 else 1 end
    where j.name = $1 and j.id = any(array(select id from next union all select id from single))
    returning j.id, j.data, j.retry_count`,
    [job, [...of.keys()], [...of.values()], others, limit],
  )
  return rows as ClaimedRow[]
}
