/** Resumed teams whose waiting messages need jobs again. */
import { sql } from 'slonik'
import { string } from 'yup'
import type { Tx } from '../../postgres/pool.ts'
import { row, rowsOf } from '../../postgres/rows.ts'

/**
 * When the second pass starts, in seconds after the resume. By then, no worker has a batch in which it read the team
 * as suspended.
 */
const SECOND_PASS_S = 10

/** Records that messages of these queues need jobs now, and again later in case the first pass missed some. */
export const insertResumedTeam = (tx: Tx, teamId: string, queues: readonly string[]) =>
  tx.query(sql.unsafe`
    insert into resumed_teams (team_id, queue, from_at)
    select ${teamId}, q.queue, service_time() + s.seconds * interval '1 second'
    from ${rowsOf(
      'q',
      { queue: 'text' },
      queues.map((queue) => ({ queue })),
    )}, (values (0), (${SECOND_PASS_S})) s (seconds)
    on conflict do nothing`)

const passRow = row({ team_id: string(), queue: string(), from_at: string() })
/** One pass through a resumed team's waiting messages of a queue. */
export type Pass = { team_id: string; queue: string; from_at: string }

/** True if any pass has started. */
export const hasStartedPass = sql.fragment`
  exists (select from resumed_teams where from_at <= (select service_time()))`

/** The passes that have started, never on a restored copy. */
export const startedPasses = (tx: Tx) =>
  tx.any(sql.prepared('started_passes', passRow)`
    select team_id, queue, from_at::text from resumed_teams
    where from_at <= (select service_time()) and is_at_home() order by from_at, team_id, queue`)

const placeRow = row({ after: string() })

/** Locks a pass and returns its last message. Null if another process has locked it, or it has ended. */
export const lockPass = (tx: Tx, { team_id, queue, from_at }: Pass) =>
  tx.maybeOneFirst(sql.type(placeRow)`
    select after from resumed_teams
    where team_id = ${team_id} and queue = ${queue} and from_at = ${from_at}::timestamptz for update skip locked`)

/** Stores the progress of a locked pass. Null ends it. */
export const movePass = (tx: Tx, { team_id, queue, from_at }: Pass, after: string | null) => {
  const own = sql.fragment`team_id = ${team_id} and queue = ${queue} and from_at = ${from_at}::timestamptz`
  return tx.query(
    after === null
      ? sql.unsafe`delete from resumed_teams where ${own}`
      : sql.unsafe`update resumed_teams set after = ${after} where ${own}`,
  )
}
