/**
 * Rows of broadcast_skips, contacts that a broadcast picked and that get nothing from it, and of broadcast_moves, what
 * moved of its figures. Promises: a figure is the sum of its moves; nothing is ever counted.
 */
import { sql } from 'slonik'
import { type InferType, number, object, string } from 'yup'
import { EMAIL_LADDER } from '../../channels/ladder.ts'
import type { Tx } from '../../postgres/pool.ts'

const SKIP_REASONS = [
  'variables',
  'unsubscribed',
  'suppressed',
  'left_topic',
  'deleted',
  'cancelled',
] as const

const skipRow = object({
  team_id: string().defined(),
  broadcast_id: string().defined(),
  contact_id: string().defined(),
  email: string().defined(),
  reason: string().oneOf(SKIP_REASONS).defined(),
  detail: string().defined(),
})
/** A contact that gets nothing from a broadcast, and why. */
export type Skip = InferType<typeof skipRow>

/** Notes skips; a contact that is noted already keeps its first. */
export async function insertSkips(tx: Tx, skips: readonly Skip[], at: Date): Promise<void> {
  if (skips.length === 0) return
  await tx.query(sql.prepared('insert_skips', object())`
    insert into broadcast_skips (team_id, broadcast_id, contact_id, email, reason, detail, at)
    select s.*, ${sql.timestamp(at)} from ${sql.unnest(
      skips.map((skip) => [
        skip.team_id,
        skip.broadcast_id,
        skip.contact_id,
        skip.email,
        skip.reason,
        skip.detail,
      ]),
      ['uuid', 'uuid', 'uuid', 'text', 'text', 'text'],
    )} as s (team_id, broadcast_id, contact_id, email, reason, detail)
    on conflict do nothing`)
}

const listedRow = object({
  contact_id: string().defined(),
  email: string().defined(),
  reason: string().defined(),
  detail: string().defined(),
  at: string().defined(),
})

/** Whom a broadcast skipped, in the order of the walk. */
export async function skipsOf(tx: Tx, teamId: string, id: string) {
  return tx.any(sql.type(listedRow)`
    select contact_id, email, reason, detail, at from broadcast_skips
    where team_id = ${teamId} and broadcast_id = ${id} order by contact_id`)
}

/** What a broadcast's figures are: emails made, contacts skipped, and emails by status. */
export const FIGURES = ['made', 'skipped', ...EMAIL_LADDER] as const
export type Figure = (typeof FIGURES)[number]

/** A figure that moved by `count`, up or down. */
export type Move = { team_id: string; broadcast_id: string; figure: Figure; count: number }

/** Appends what moved. */
export async function insertMoves(tx: Tx, moves: readonly Move[]): Promise<void> {
  const tuples = moves
    .filter(({ count }) => count !== 0)
    .map(({ team_id, broadcast_id, figure, count }) => [team_id, broadcast_id, figure, count])
  if (tuples.length === 0) return
  await tx.query(sql.prepared('insert_moves', object())`
    insert into broadcast_moves (team_id, broadcast_id, figure, count)
    select * from ${sql.unnest(tuples, ['uuid', 'uuid', 'text', 'int4'])} as m (team_id, broadcast_id, figure, count)`)
}

const figureRow = object({
  broadcast_id: string().defined(),
  figure: string().oneOf(FIGURES).defined(),
  count: number().defined(),
})

/** The figures of these broadcasts of a team; those that never moved are absent. */
export async function figuresOf(tx: Tx, teamId: string, ids: readonly string[]) {
  return tx.any(sql.type(figureRow)`
    select broadcast_id, figure, sum(count)::integer as count from broadcast_moves
    where team_id = ${teamId} and broadcast_id = any(${sql.array([...ids], 'uuid')})
    group by broadcast_id, figure`)
}

/** Folds the moves of each figure into one, where there are many. */
export async function foldMoves(tx: Tx, most: number): Promise<void> {
  await tx.query(sql.unsafe`
    with many as (
      select team_id, broadcast_id from broadcast_moves group by team_id, broadcast_id having count(*) > ${most}
    ), gone as (
      delete from broadcast_moves m using many
      where m.team_id = many.team_id and m.broadcast_id = many.broadcast_id
      returning m.team_id, m.broadcast_id, m.figure, m.count
    )
    insert into broadcast_moves (team_id, broadcast_id, figure, count)
    select team_id, broadcast_id, figure, sum(count) from gone group by team_id, broadcast_id, figure
    having sum(count) <> 0`)
}
