/**
 * Writes the audit log: actions of users on the dashboard and of operators at the CLI, in the transaction of the
 * change. Entries contain no secrets and no message content, and never change.
 */
import type { At } from '../../postgres/pool.ts'
import { idAt } from '../../process/ids.ts'
import { storableWords } from '../../validation/words.ts'
import { insertAuditEntry } from './audit.sql.ts'

/** An email address, `cli`, the prefix of a client's credential, or `recipient` for a link. */
export type Actor = string

export type AuditEntry = {
  /** Null if it belongs to no team. */
  team_id: string | null
  /** The kind of object and the action: `key.create`. */
  action: string
  /** The object: an ID, a name or an address. */
  subject: string
  detail?: string
}

/** A transaction with an actor. */
export type By = At & { actor: Actor }

/** Like `By`, for actions that also have other callers. Null: a client, the service or a background job. */
export type Caller = At & { actor: Actor | null }

/** Adds an entry to the audit log. Does nothing without an actor. */
export async function record({ tx, now, actor }: Caller, entry: AuditEntry): Promise<void> {
  if (actor === null) return
  const { team_id, action, subject, detail = '' } = entry
  const words = { subject: storableWords(subject), detail: storableWords(detail) }
  await insertAuditEntry(tx, { id: idAt(now), team_id, actor, action, ...words }, now)
}
