/**
 * The line before a queue that teams share: start-time fair queueing. Each job has a place, lower ones go first.
 * Promises: a team's next job stands behind its own last one, and never before the place that the line has reached. So
 * a team that is new in line stands beside the first jobs of a team that floods it. It costs a statement every quarter
 * of a second, not one per message. Places become pg-boss's priorities (measured to cost nothing when fetching).
 * Where a queue's groups have lines of their own (jobs.ts, by_group), one that stands still holds back no other.
 */
import type { Tx } from '../postgres/pool.ts'
import { lookAtLine } from './fair-queue.sql.ts'
import {
  groupOf,
  hasLineByGroup,
  isSharedJob,
  type JobName,
  type Payload,
  SHARED_JOBS,
  type SharedJob,
} from './jobs.ts'

/** pg-boss fetches the highest priority first. Beyond the column's range all are alike. */
export const priorityOf = (place: number): number => -Math.min(place, 2_147_483_647)

/** How long a look at the line is good for, in milliseconds. */
const LINE_CACHED_MS = 250
/** Teams whose last place of a returning job is remembered, and groups whose lines are. */
const TEAMS_REMEMBERED = 10_000
const GROUPS_REMEMBERED = 1_000

/** The places of `count` more jobs of a team whose last one stands at `last`. Pure. */
export function placesAfter(last: number, reached: number, count: number): number[] {
  const first = Math.max(last + 1, reached)
  return Array.from({ length: count }, (_, index) => first + index)
}

/** What is known of a line: the place that it has reached, and when that was looked at. */
type Reached = { place: number; looked: number }

function createLine(job: SharedJob) {
  const byGroup = hasLineByGroup(job)
  const reached = new Map<string | null, Reached>()
  let top = 0
  const last = new Map<string, number>()

  const look = async (tx: Tx, of: string | null): Promise<number> => {
    const group = byGroup ? of : null
    const known = reached.get(group) ?? { place: 0, looked: Number.NEGATIVE_INFINITY }
    if (performance.now() - known.looked < LINE_CACHED_MS) return known.place
    reached.set(group, { ...known, looked: performance.now() })
    const seen = await lookAtLine(tx, job, top, group)
    top = seen.top
    const place = Math.max(known.place, seen.head ?? seen.top)
    if (reached.size > GROUPS_REMEMBERED) reached.clear()
    reached.set(group, { place, looked: reached.get(group)?.looked ?? performance.now() })
    return place
  }

  return {
    /** The place that the queue has reached, as far as this process knows; where each group has a line, its group. */
    reached: (tx: Tx, group: string | null = null) => look(tx, group),
    /** Says that places up to this one are given. */
    given(place: number): void {
      top = Math.max(top, place)
    },
    /** Places for jobs that come back, or come again: each behind its team's others that did. */
    async placesOf(tx: Tx, jobs: readonly { team: string; group: string | null }[]): Promise<number[]> {
      const groups = [...new Set(jobs.map(({ group }) => (byGroup ? group : null)))]
      const from = new Map<string | null, number>()
      for (const group of groups) from.set(group, await look(tx, group))
      if (last.size > TEAMS_REMEMBERED) last.clear()
      return jobs.map(({ team, group }) => {
        const line = byGroup ? group : null
        const key = `${team}/${line ?? ''}`
        const [place = 0] = placesAfter(last.get(key) ?? 0, from.get(line) ?? 0, 1)
        last.set(key, place)
        return place
      })
    },
  }
}

export type Lines = Readonly<Record<SharedJob, ReturnType<typeof createLine>>>

export const createLines = (): Lines =>
  Object.fromEntries(SHARED_JOBS.map((job) => [job, createLine(job)])) as Lines

/** Places for jobs of any queue that come back; none where nobody stands in line. */
export async function placesOfReturning<J extends JobName>(
  lines: Lines,
  tx: Tx,
  job: J,
  payloads: readonly Payload<J>[],
) {
  if (!isSharedJob(job)) return []
  const jobs = payloads.map((payload) => ({
    team: 'team_id' in payload ? String(payload.team_id) : '',
    group: groupOf(job, payload),
  }))
  return lines[job].placesOf(tx, jobs)
}
