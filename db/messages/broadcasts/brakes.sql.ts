/** The queries behind the brakes of broadcasts: what has left, bounced and complained by now, and at the last brake. */
import { sql } from 'slonik'
import { type InferType, mixed, number, object } from 'yup'
import type { Tx } from '../../postgres/pool.ts'
import type { BroadcastRow } from './broadcasts.sql.ts'
import { figuresOf } from './skips.sql.ts'

export type BrakeKey = Pick<BroadcastRow, 'team_id' | 'id'>

const tally = object({
  /** Emails that wait no more. */
  left: number().defined(),
  bounced: number().defined(),
  complained: number().defined(),
})
export type Tally = InferType<typeof tally>

const brakedRow = object({ braked: mixed<Tally>().defined().nullable(), moves: number().defined() })

/** From this many on, the moves are folded: their sum is asked for every second. */
const MANY = 2_000

/** How a broadcast stands, and how it stood when it was braked last. */
export async function foldedFigures(
  tx: Tx,
  { team_id, id }: BrakeKey,
): Promise<{ now: Tally; braked: Tally }> {
  const { braked, moves } = await tx.one(sql.type(brakedRow)`
    select braked_at_figures as braked, (
      select count(*)::integer from (
        select from broadcast_moves m where m.team_id = b.team_id and m.broadcast_id = b.id limit ${MANY}) counted
    ) as moves
    from broadcasts b where team_id = ${team_id} and id = ${id}`)
  if (moves >= MANY) await foldMovesOf(tx, { team_id, id })
  const rows = await figuresOf(tx, team_id, [id])
  const count = (figure: string) => rows.find((row) => row.figure === figure)?.count ?? 0
  const now = {
    left: count('made') - count('queued'),
    bounced: count('bounced'),
    complained: count('complained'),
  }
  return { now, braked: braked ?? { left: 0, bounced: 0, complained: 0 } }
}

async function foldMovesOf(tx: Tx, { team_id, id }: BrakeKey): Promise<void> {
  await tx.query(sql.unsafe`
    with held as materialized (
      select id from broadcast_moves where team_id = ${team_id} and broadcast_id = ${id}
      order by id for update skip locked
    ), gone as (
      delete from broadcast_moves m using held
      where m.team_id = ${team_id} and m.broadcast_id = ${id} and m.id = held.id
      returning m.figure, m.count
    )
    insert into broadcast_moves (team_id, broadcast_id, figure, count)
    select ${team_id}, ${id}, figure, sum(count) from gone group by figure having sum(count) <> 0`)
}

/** Judges it from here on. */
export async function saveBraked(tx: Tx, { team_id, id }: BrakeKey, now: Tally): Promise<void> {
  await tx.query(sql.unsafe`
    update broadcasts set braked_at_figures = ${JSON.stringify(now)} where team_id = ${team_id} and id = ${id}`)
}
