/**
 * Notes who did what: people on the dashboard and operators at the CLI, in the transaction of the change itself. Use
 * cases call it, so that a change has the same line wherever it is made.
 * Promises: an entry holds no secret and no message's content; it is never changed. Must not decide anything.
 */
import type { At } from '../../postgres/pool.ts'
import { idAt } from '../../process/ids.ts'
import { storableWords } from '../../validation/words.ts'
import { insertAuditEntry } from './audit.sql.ts'

/** Who acts: the address of a person, `cli`, the prefix of a client's credential, or `recipient` (of a link). */
export type Actor = string

export type AuditEntry = {
  /** Null for what belongs to no team. */
  team_id: string | null
  /** What kind of thing, and what was done: `key.create`. */
  action: string
  /** To what: an id, a name, an address. */
  subject: string
  detail?: string
}

/** A transaction of somebody's: a use case that changes something writes its own line in it. */
export type By = At & { actor: Actor }

/** As `By`, for what others do too. Null: a client of the API, the service itself, or what a background job enters. */
export type Caller = At & { actor: Actor | null }

/** Adds an entry to the audit trail; nothing when nobody is named. */
export async function record({ tx, now, actor }: Caller, entry: AuditEntry): Promise<void> {
  if (actor === null) return
  const { team_id, action, subject, detail = '' } = entry
  const words = { subject: storableWords(subject), detail: storableWords(detail) }
  await insertAuditEntry(tx, { id: idAt(now), team_id, actor, action, ...words }, now)
}
