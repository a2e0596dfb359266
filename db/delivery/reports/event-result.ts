/** The result of applying one reported event. Pure. */

/**
 * - applied: stored, now or earlier. Repeats end in the same state. `again`: the message to send again after
 *   some seconds, because the provider returned it. `team_id`: the message's team. `sync`: teams whose
 *   templates must be synced.
 * - unknown: its message doesn't exist, or not yet, so the event is retried.
 * - ignored: it can't change anything. The reason is shown to operators.
 */
export type EventResult =
  | {
      kind: 'applied'
      team_id?: string
      /** It was stored before. */
      repeated?: boolean
      again?: { team_id: string; message_id: string; parts: boolean; number: string | null; seconds: number }
      sync?: readonly string[]
      /** Notices for the teams' owners: a template with a new category. */
      notices?: readonly { team_id: string; template_id: string; category_before: string }[]
    }
  | { kind: 'unknown' }
  | { kind: 'ignored'; reason: string }

export const APPLIED: EventResult = { kind: 'applied' }
export const UNKNOWN: EventResult = { kind: 'unknown' }
export const ignored = (reason: string): EventResult => ({ kind: 'ignored', reason })
