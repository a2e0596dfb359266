/** Decides whether a database is the original, after a failover or not, or a copy. Pure. DECISIONS: A restored copy. */
import type { HeartbeatResult } from './restore-guard.sql.ts'

/** In milliseconds. */
export type GuardTimes = {
  /** The heartbeat interval. A process can't notice the loss of less than that. */
  every: number
  /** How long to wait before deciding a failover, so that a process whose heartbeat is missing can object first. */
  hold: number
  /**
   * The time until it counts as a copy that no process has claimed. Living processes find the new server within 20 s.
   */
  patience: number
}

/** A missing heartbeat isn't evidence of a copy if it is older than this many days. */
const MARK_IS_EVIDENCE_DAYS = 1

/** A process's memory of the database. */
export type Memory = {
  last: { mark: number; at: string } | null
  /** The ID of the original database it last saw. Null if it started on a copy. */
  original: string | null
  /** How many milliseconds it has not been on the original database. */
  away: number
}

type Verdict =
  | { kind: 'original' | 'undecided' | 'new' | 'unknown' | 'continued' }
  | { kind: 'copy'; why: string }

const COPY = {
  lost: 'data that this process had written is missing',
  elsewhere: 'the database has moved',
  unconfirmed: 'no running process can confirm that nothing is missing',
} as const

const days = (from: string, to: string): number => (Date.parse(to) - Date.parse(from)) / 86_400_000

/** Returns the conclusion of a process. Pure. */
export function judgeDatabase(
  look: HeartbeatResult,
  { last, original, away }: Memory,
  { hold, patience }: GuardTimes,
): Verdict {
  if (look.home_id === null) return { kind: 'new' }
  if (!look.found) {
    const isTooOld = original === null || last === null || days(last.at, look.at) > MARK_IS_EVIDENCE_DAYS
    // Another process has paused it since, and it may have been resumed manually.
    const known = look.how === 'restored' && look.home_id !== original
    return isTooOld || known ? { kind: 'unknown' } : { kind: 'copy', why: COPY.lost }
  }
  if (look.is_home) return { kind: 'original' }
  if (!look.is_same_place) return { kind: 'copy', why: COPY.elsewhere }
  if (original === look.home_id && away >= hold) return { kind: 'continued' }
  return away >= patience ? { kind: 'copy', why: COPY.unconfirmed } : { kind: 'undecided' }
}
