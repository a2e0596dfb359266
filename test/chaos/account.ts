/**
 * What a fault has cost, counted at the end: what was accepted, what was lost, what was repeated, what went over a
 * limit, how long it took until all was well again.
 */
import type { TestTeam } from '../support/service.ts'
import type { Load } from './load.ts'
import { CONCURRENCY, type World, within } from './world.ts'

/** A line of the table. */
export type Account = {
  accepted: number
  /** Accepted, and never taken whole by the relay. */
  lost: number
  /** Copies beyond the first of a message. */
  repeated: number
  /** Of these, the copies of messages that had been answered before. */
  after_answer: number
  /**
   * Rows beyond what a limit allows, keys with two rows, counters that differ from a recount, states that are wrong.
   */
  over: number
  /** Seconds from the end of the fault until all that was accepted had been taken; null when it never was. */
  recovered: number | null
  note?: string
}

/** Kills may repeat what had no answer yet, or whose answer was not on record yet. */
export const inFlight = (kills: number): number => kills * CONCURRENCY

const isTaken = ({ relay }: World, id: string): boolean => relay.copies.has(id)

/** What is counted where nothing is to be taken, or nothing to recover from. */
export const counted = (accepted: number, over: number, note = ''): Account => ({
  accepted,
  lost: 0,
  repeated: 0,
  after_answer: 0,
  over,
  recovered: 0,
  note,
})

/** How many emails a team has, of one status or of all. */
export async function emailsOf(
  { sql }: World,
  { id }: TestTeam,
  status: string | null = null,
): Promise<number> {
  const [row] = await sql<{ count: string }>(
    'select count(*) as count from emails where team_id = $1 and ($2::text is null or status = $2)',
    [id, status],
  )
  return Number(row?.count)
}

/** Counters and rows that contradict each other. */
export async function contradictions(world: World): Promise<number> {
  const [row] = await world.sql<{ wrong: string }>(`
    select (
      select count(*) from allowances a where emails_used <> (
        select count(*) from emails e where e.team_id = a.team_id
          and e.created_at >= a.period_start and e.created_at < a.period_end)
    ) + (
      select count(*) from (
        select 1 from emails where idempotency_key is not null
        group by team_id, idempotency_key having count(*) > 1) twice
    ) as wrong`)
  return Number(row?.wrong ?? 0)
}

/**
 * Waits until all that was accepted has been taken, and every row whose message was answered says so.
 * @param ended when the fault ended: now, unless it is said.
 */
export async function settle(
  world: World,
  load: Load,
  { ended = performance.now(), seconds = 120 }: { ended?: number; seconds?: number } = {},
): Promise<Account> {
  const ids = [...load.accepted.values()]
  const taken = await within(seconds, () => ids.every((id) => isTaken(world, id)))
  const recovered = taken ? (performance.now() - ended) / 1_000 : null
  const answered = ids.filter((id) => world.relay.copies.get(id)?.some((copy) => copy.answered))
  let unsettled = 0
  await within(60, async () => {
    unsettled = (await world.sql(`select 1 from emails where status = 'queued' and id = any($1)`, [answered]))
      .length
    return unsettled === 0
  })
  const copies = ids.map((id) => world.relay.copies.get(id) ?? [])
  const extra = copies.map((each) => Math.max(0, each.length - 1))
  const afterAnswer = copies.map((each) => {
    const first = each.findIndex(({ answered }) => answered)
    return first < 0 ? 0 : each.length - 1 - first
  })
  const sum = (numbers: number[]): number => numbers.reduce((all, each) => all + each, 0)
  return {
    accepted: new Set(ids).size,
    lost: ids.filter((id) => !isTaken(world, id)).length,
    repeated: sum(extra),
    after_answer: sum(afterAnswer),
    over: (await contradictions(world)) + load.wrong.length + unsettled,
    recovered,
  }
}
