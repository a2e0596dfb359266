/**
 * Counts rejections, and stores each team's last rejected calls for the dashboard, without making them wait. Bodies,
 * queries and credentials are never stored. A killed process loses the calls that it hasn't stored yet.
 */
import { insertRejectedCalls } from '../../db/accounts/rejections/refusals.sql.ts'
import { RequestError } from '../../db/errors.ts'
import type { Database } from '../../db/postgres/pool.ts'
import { idAt } from '../../db/process/ids.ts'
import type { Metrics } from '../../db/process/metrics.ts'
import { storableWords } from '../../db/validation/words.ts'
import { reasonOf } from './errors.ts'

const STORE_INTERVAL_MS = 2_000
/** In one interval. Older calls are dropped. */
const MAX_KEPT_PER_TEAM = 20

/** The caller: the team, and the prefix of its key (none for a session token). */
type Caller = { team_id: string; key?: string }

type Call = { method: string; route: string; http_request_id: string; now: Date }

export type Rejections = ReturnType<typeof createRejections>

export function createRejections(database: Pick<Database, 'transaction'>) {
  const gathered = new Map<string, Parameters<typeof insertRejectedCalls>[1][number][]>()
  let timer: NodeJS.Timeout | null = null

  const flush = async (): Promise<void> => {
    if (timer) clearTimeout(timer)
    timer = null
    const calls = [...gathered.values()].flat()
    gathered.clear()
    if (calls.length > 0) await database.transaction((tx) => insertRejectedCalls(tx, calls))
  }
  return {
    note({ team_id, key }: Caller, { now, ...call }: Call, { code, message }: RequestError): void {
      const stored = {
        team_id,
        id: idAt(now),
        ...call,
        code,
        message: storableWords(message),
        key_prefix: key ?? null,
        created_at: now.toISOString(),
      }
      gathered.set(team_id, [...(gathered.get(team_id) ?? []), stored].slice(-MAX_KEPT_PER_TEAM))
      // Errors are ignored, and the timer doesn't keep the process alive.
      timer ??= setTimeout(() => void flush().catch(() => {}), STORE_INTERVAL_MS).unref()
    },
    flush,
  }
}

export function countRejections(metrics: Metrics, outcomes: readonly unknown[]): void {
  for (const outcome of outcomes) {
    if (outcome instanceof RequestError)
      metrics.count('heliograph_rejected_total', { code: outcome.code, ...reasonOf(outcome) })
  }
}
