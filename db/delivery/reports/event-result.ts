/** What became of one reported event. Pure; the words that channels and the ingestion share. */

/**
 * - applied: stored, now or before; a repeat ends in the same state. `again`: the message to send once more
 *   after some seconds, because the provider gave it back. `team_id`: whose message it was. `sync`: the teams
 *   whose templates have to be listed.
 * - unknown: its message is not there, or not there yet: worth another try.
 * - ignored: it can never move anything, with the reason for people.
 */
export type EventResult =
  | {
      kind: 'applied'
      team_id?: string
      /** It was stored before. */
      repeated?: boolean
      again?: { team_id: string; message_id: string; number: string | null; seconds: number }
      sync?: readonly string[]
      /** What owners of teams are notified of: a template that has another category now. */
      notices?: readonly { team_id: string; template_id: string; category_before: string }[]
    }
  | { kind: 'unknown' }
  | { kind: 'ignored'; reason: string }

export const APPLIED: EventResult = { kind: 'applied' }
export const UNKNOWN: EventResult = { kind: 'unknown' }
export const ignored = (reason: string): EventResult => ({ kind: 'ignored', reason })
