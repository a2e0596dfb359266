/**
 * Counts the cost of a fault at its end: messages accepted, lost, repeated or over a limit, and the time to
 * recover.
 */
import type { TestTeam } from '../support/service.ts'
import type { Load } from './load.ts'
import { CONCURRENCY, type World, within } from './world.ts'

/** A row of the results table. */
export type Account = {
  accepted: number
  /** Accepted, but never completely received by the relay. */
  lost: number
  /** Copies beyond the first of a message. */
  repeated: number
  /** Copies of messages whose acceptance the relay had already reported. */
  after_answer: number
  /** Rows over a limit, keys with two rows, counters that differ from a recount, and wrong states. */
  over: number
  /** Seconds from the end of the fault until everything accepted was received. Null if never. */
  recovered: number | null
  note?: string
}

/** Returns how many sends kills may repeat: those without a response, or without a recorded one. */
export const inFlight = (kills: number): number => kills * CONCURRENCY

const isTaken = ({ relay }: World, id: string): boolean => relay.copies.has(id)

/** Builds the account of a fault without a backlog or recovery. */
export const counted = (accepted: number, over: number, note = ''): Account => ({
  accepted,
  lost: 0,
  repeated: 0,
  after_answer: 0,
  over,
  recovered: 0,
  note,
})

/** Counts a team's emails, with one status or in total. */
export async function emailsOf({ sql }: World, { id }: TestTeam, status: string | null = null) {
  const [row] = await sql<{ count: string }>(
    'select count(*) as count from emails where team_id = $1 and ($2::text is null or status = $2)',
    [id, status],
  )
  return Number(row?.count)
}

/** Counts the counters and rows that contradict each other. */
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
 * Waits until everything accepted has been received, and the rows record every response.
 * @param ended when the fault ended, now by default.
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
