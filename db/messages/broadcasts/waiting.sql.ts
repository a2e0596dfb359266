/** Queries for a broadcast's unfinished emails. There are only a few at any time. */
import { sql } from 'slonik'
import { object, string } from 'yup'
import { BROADCAST_QUEUES } from '../../channels/channels.sql.ts'
import type { Tx } from '../../postgres/pool.ts'
import { countRow, row } from '../../postgres/rows.ts'
import { openDeadLetters, withoutJob } from '../../queue/dead-letters.sql.ts'
import { bringForward } from '../../queue/jobs.sql.ts'
import type { BroadcastKey } from './broadcasts.sql.ts'

/** The broadcast's unfinished emails, except failed ones, which need manual action. */
const waiting = ({ team_id, id }: BroadcastKey) => sql.fragment`
  select from email_states e where e.team_id = ${team_id} and e.broadcast_id = ${id} and e.unfinished
    and ${sql.join(
      BROADCAST_QUEUES.map(
        ({ job }) =>
          sql.fragment`not exists (select from ${openDeadLetters(job)} d where d.source_id = e.id)`,
      ),
      sql.fragment` and `,
    )}`

export const countWaitingEmails = (tx: Tx, key: BroadcastKey, most: number) =>
  tx.oneFirst(sql.type(countRow)`
    select count(*)::integer as count from (${waiting(key)} limit ${most}) counted`)

export const isUnderWay = (tx: Tx, key: BroadcastKey): Promise<boolean> =>
  tx.exists(sql.type(object())`${waiting(key)}`)

/** Brings forward the emails that only wait for the broadcast's state. */
export async function bringEmailsForward(tx: Tx, { team_id, id }: BroadcastKey): Promise<void> {
  const own = sql.fragment`
    select e.id from email_states e where e.team_id = ${team_id} and e.broadcast_id = ${id} and e.unfinished`
  for (const { job } of BROADCAST_QUEUES) await bringForward(tx, job, own)
}

const keyRow = row({ team_id: string(), broadcast_id: string() })

/** Returns active broadcasts that have lost their job. */
export const lostExpansions = (tx: Tx, limit: number) =>
  tx.any(sql.type(keyRow)`
    select b.team_id, b.id as broadcast_id from broadcasts b
    where b.state in ('scheduled', 'sending') and ${withoutJob('expand-broadcast', sql.fragment`b.id`)}
    limit ${limit}`)
