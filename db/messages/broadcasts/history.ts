/**
 * The history of a broadcast: manual changes from the audit log, automatic changes, and the current state. Earlier
 * changes by API clients aren't stored.
 */
import { type BroadcastEntryRow, entriesOfBroadcast } from '../../accounts/audit/audit.sql.ts'
import type { Tx } from '../../postgres/pool.ts'
import type { BroadcastRow } from './broadcasts.sql.ts'

const ACTS = ['create', 'start', 'unschedule', 'pause', 'resume', 'cancel', 'again'] as const

/**
 * `by` is an email address, or `cli`. Null for an API client or an automatic change. `act`: `start` means at once,
 * `begin` at its scheduled time.
 */
export type HistoryEntry = {
  act: (typeof ACTS)[number] | 'schedule' | 'begin' | 'end'
  at: string
  by: string | null
  itself: boolean
}

/** Only the latest manual changes are read. */
const MAX_ENTRIES = 50
/** How long after a click a broadcast may start because of it. */
const START_DELAY_MS = 60_000

/** Manual changes, latest first. A start was scheduled by the rule of `scheduledStarts` (scheduled-starts.sql.ts). */
function named(rows: readonly BroadcastEntryRow[], { send_at }: BroadcastRow): HistoryEntry[] {
  const unscheduled = rows.findIndex(({ action }) => action === 'broadcast.unschedule')
  return rows.map(({ actor, action, created_at }, index) => {
    const act = ACTS.find((each) => action === `broadcast.${each}`) ?? 'create'
    const isScheduled = act === 'start' && (send_at !== null || (unscheduled >= 0 && unscheduled < index))
    return { act: isScheduled ? 'schedule' : act, at: created_at, by: actor, itself: false }
  })
}

const unnamed = (act: HistoryEntry['act'], at: string, itself: boolean): HistoryEntry => ({
  act,
  at,
  by: null,
  itself,
})

/** Adds the start unless a manual change already shows it. */
function beginning({ started_at, send_at }: BroadcastRow, entries: readonly HistoryEntry[]): HistoryEntry[] {
  if (started_at === null) return []
  const isDone = entries.some(({ act, at }) => {
    const after = Date.parse(started_at) - Date.parse(at)
    return ['start', 'resume', 'again'].includes(act) && after >= 0 && after < START_DELAY_MS
  })
  if (isDone) return []
  return [send_at === null ? unnamed('start', started_at, false) : unnamed('begin', started_at, true)]
}

/** Adds the current state if it was reached automatically. */
function standing(row: BroadcastRow, entries: readonly HistoryEntry[]): HistoryEntry[] {
  const { state, state_reason, updated_at, ended_at } = row
  const latest = entries.find(({ act }) => act !== 'create')?.act
  if (state === 'sent' && ended_at !== null) return [unnamed('end', ended_at, true)]
  if (state === 'paused' && (state_reason !== null || latest !== 'pause'))
    return [unnamed('pause', updated_at, state_reason !== null)]
  if (state === 'cancelled' && latest !== 'cancel') return [unnamed('cancel', ended_at ?? updated_at, false)]
  if (state === 'scheduled' && latest !== 'schedule') return [unnamed('schedule', updated_at, false)]
  return []
}

export async function broadcastHistory(tx: Tx, row: BroadcastRow): Promise<HistoryEntry[]> {
  const actions = ACTS.map((act) => `broadcast.${act}`)
  const entries = named(await entriesOfBroadcast(tx, row, actions, MAX_ENTRIES), row)
  const isMade = entries.length === MAX_ENTRIES || entries.some(({ act }) => act === 'create')
  const made = isMade ? [] : [unnamed('create', row.created_at, false)]
  return [...standing(row, entries), ...beginning(row, entries), ...entries, ...made].sort(
    (one, other) => Date.parse(other.at) - Date.parse(one.at),
  )
}
