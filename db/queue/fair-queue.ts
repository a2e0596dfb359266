/**
 * The line before a queue that teams share: start-time fair queueing. Each job has a place, lower ones go first.
 * Promises: a team's next job stands behind its own last one, and never before the place that the line has reached. So
 * a team that is new in line stands beside the first jobs of a team that floods it. It costs a statement every quarter
 * of a second, not one per message. Places become pg-boss's priorities (measured to cost nothing when fetching).
 */
import type { Tx } from '../postgres/pool.ts'
import { lookAtLine } from './fair-queue.sql.ts'
import { isSharedJob, type JobName, SHARED_JOBS, type SharedJob } from './jobs.ts'

/** pg-boss fetches the highest priority first. Beyond the column's range all are alike. */
export const priorityOf = (place: number): number => -Math.min(place, 2_147_483_647)

/** How long a look at the line is good for, in milliseconds. */
const LINE_CACHED_MS = 250
/** Teams whose last place of a returning job is remembered. */
const TEAMS_REMEMBERED = 10_000

/** The places of `count` more jobs of a team whose last one stands at `last`. Pure. */
export function placesAfter(last: number, reached: number, count: number): number[] {
  const first = Math.max(last + 1, reached)
  return Array.from({ length: count }, (_, index) => first + index)
}

function createLine(job: SharedJob) {
  let reached = 0
  let top = 0
  let looked = Number.NEGATIVE_INFINITY
  const last = new Map<string, number>()

  const look = async (tx: Tx): Promise<number> => {
    if (performance.now() - looked < LINE_CACHED_MS) return reached
    looked = performance.now()
    const seen = await lookAtLine(tx, job, top)
    top = seen.top
    reached = Math.max(reached, seen.head ?? seen.top)
    return reached
  }

  return {
    /** The place that the queue has reached, as far as this process knows. */
    reached: look,
    /** Says that places up to this one are given. */
    given(place: number): void {
      top = Math.max(top, place)
    },
    /** Places for jobs that come back, or come again: each behind its team's others that did. */
    async placesOf(tx: Tx, teams: readonly string[]): Promise<number[]> {
      const from = await look(tx)
      if (last.size > TEAMS_REMEMBERED) last.clear()
      return teams.map((team) => {
        const [place = 0] = placesAfter(last.get(team) ?? 0, from, 1)
        last.set(team, place)
        return place
      })
    },
  }
}

export type Lines = Readonly<Record<SharedJob, ReturnType<typeof createLine>>>

export const createLines = (): Lines =>
  Object.fromEntries(SHARED_JOBS.map((job) => [job, createLine(job)])) as Lines

/** Places for jobs of any queue that come back; none where nobody stands in line. */
export async function placesOfReturning(lines: Lines, tx: Tx, job: JobName, payloads: readonly object[]) {
  if (!isSharedJob(job)) return []
  const teams = payloads.map((payload) => ('team_id' in payload ? String(payload.team_id) : ''))
  return lines[job].placesOf(tx, teams)
}
