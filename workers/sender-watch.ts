/**
 * What this process sees of a sender between two looks at its row: what was taken last, what was refused in a row.
 * Promises: when trouble shows, sends that were released but have not begun are stopped at once. Local to this
 * process: what other workers must know is in the sender's row (db/senders/trouble.ts).
 */
import type { SenderTrouble } from './providers/provider.ts'
import type { Judged } from './verdict.ts'

/** What one send tells of its sender; null when nothing. */
export type Finding =
  | { kind: 'accepted'; began_at: Date }
  | { kind: SenderTrouble; words: string; wait_seconds?: number | undefined; began_at: Date }

export type SenderWatch = {
  /** Takes note of one send's outcomes. @returns what they tell of the sender. */
  note(outcomes: readonly Judged[], began_at: Date): Finding | null
  /** Whether what was let go at that moment, by `performance.now()`, shall not begin any more. */
  isHalted(booked_at: number): boolean
  /** When the latest send was begun that was taken. */
  acceptedAt(): Date | null
}

/** So many refusals by policy in a row, with nothing taken between, are our own set-up's. */
const STRIKES = 3

export function createSenderWatch(): SenderWatch {
  let acceptedAt: Date | null = null
  let haltedAt = Number.NEGATIVE_INFINITY
  let strikes = 0
  const troubleOf = (outcomes: readonly Judged[], began_at: Date): Finding | null => {
    for (const { kind, detail: words, trouble = 'setup', wait_seconds } of outcomes) {
      if (kind === 'sender') return { kind: trouble, words, wait_seconds, began_at }
      if (kind === 'policy' && strikes >= STRIKES) return { kind: 'setup', words, began_at }
    }
    return null
  }
  return {
    note(outcomes, began_at) {
      if (outcomes.some(({ kind }) => kind === 'accepted')) {
        strikes = 0
        if (acceptedAt === null || began_at > acceptedAt) acceptedAt = began_at
        const slow = outcomes.find(({ trouble }) => trouble === 'slow')
        return slow ? { kind: 'slow', words: slow.detail, began_at } : { kind: 'accepted', began_at }
      }
      if (outcomes.some(({ kind }) => kind === 'policy')) strikes += 1
      const trouble = troubleOf(outcomes, began_at)
      if (trouble !== null) haltedAt = performance.now()
      return trouble
    },
    isHalted: (booked_at) => booked_at <= haltedAt,
    acceptedAt: () => acceptedAt,
  }
}
