/**
 * Start-time fair queueing for queues that teams share. Each job has a position, and lower ones go first. A team's
 * next job is placed after its own last one, and never before the position that the queue has reached. So a new team
 * is placed next to the first jobs of a team with a large backlog. This costs a statement every 250 ms, not one per
 * message. Positions are stored as pg-boss's priorities. Groups can have their own order (jobs.ts, by_group).
 */

import type { Tx } from '../postgres/pool.ts'
import { fromKeys } from '../validation/keys.ts'
import { readQueuePosition } from './fair-queue.sql.ts'
import {
  hasLanesByGroup,
  isSharedJob,
  type JobName,
  type Payload,
  SHARED_JOBS,
  type SharedJob,
  toGroup,
} from './jobs.ts'

/**
 * Converts a position to a priority, because pg-boss fetches the highest first. Positions beyond the column's range
 * are equal.
 */
export const toPriority = (place: number): number => -Math.min(place, 2_147_483_647)

/** How long the position of a queue is cached, in milliseconds. */
const LINE_CACHED_MS = 250
/** The teams and groups whose last positions are cached. */
const TEAMS_REMEMBERED = 10_000
const GROUPS_REMEMBERED = 1_000

/** Returns the positions of `count` more jobs of a team whose last one is at `last`. Pure. */
export function positionsAfter(last: number, reached: number, count: number): number[] {
  const first = Math.max(last + 1, reached)
  return Array.from({ length: count }, (_, index) => first + index)
}

/** The position that a queue has reached, and when that was read. */
type Reached = { place: number; looked: number }

function createLine(job: SharedJob) {
  const byGroup = hasLanesByGroup(job)
  const reached = new Map<string | null, Reached>()
  let top = 0
  const last = new Map<string, number>()

  const look = async (tx: Tx, of: string | null): Promise<number> => {
    const group = byGroup ? of : null
    const known = reached.get(group) ?? { place: 0, looked: Number.NEGATIVE_INFINITY }
    if (performance.now() - known.looked < LINE_CACHED_MS) return known.place
    reached.set(group, { ...known, looked: performance.now() })
    const seen = await readQueuePosition(tx, job, top, group)
    top = seen.top
    const place = Math.max(known.place, seen.head ?? seen.top)
    if (reached.size > GROUPS_REMEMBERED) reached.clear()
    reached.set(group, { place, looked: reached.get(group)?.looked ?? performance.now() })
    return place
  }

  return {
    /** Returns the position that the queue, or its group, has reached, as far as this process knows. */
    reached: (tx: Tx, group: string | null = null) => look(tx, group),
    /** Records that positions up to this one are assigned. */
    given(place: number): void {
      top = Math.max(top, place)
    },
    /** Returns positions for jobs that return or recur, each behind the team's other returning jobs. */
    async placesOf(tx: Tx, jobs: readonly { team: string; group: string | null }[]): Promise<number[]> {
      const groups = [...new Set(jobs.map(({ group }) => (byGroup ? group : null)))]
      const from = new Map<string | null, number>()
      for (const group of groups) from.set(group, await look(tx, group))
      if (last.size > TEAMS_REMEMBERED) last.clear()
      return jobs.map(({ team, group }) => {
        const line = byGroup ? group : null
        const key = `${team}/${line ?? ''}`
        const [place = 0] = positionsAfter(last.get(key) ?? 0, from.get(line) ?? 0, 1)
        last.set(key, place)
        return place
      })
    },
  }
}

export type Lines = Readonly<Record<SharedJob, ReturnType<typeof createLine>>>

export const createLines = (): Lines => fromKeys(SHARED_JOBS, createLine)

/** Returns positions for returning jobs of any queue. None if the queue has no order. */
export async function positionsOfReturning<J extends JobName>(
  lines: Lines,
  tx: Tx,
  job: J,
  payloads: readonly Payload<J>[],
) {
  if (!isSharedJob(job)) return []
  const jobs = payloads.map((payload) => ({
    team: 'team_id' in payload ? String(payload.team_id) : '',
    group: toGroup(job, payload),
  }))
  return lines[job].placesOf(tx, jobs)
}
