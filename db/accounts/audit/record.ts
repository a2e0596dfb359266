/**
 * Notes who did what: people on the dashboard and operators at the CLI, in the transaction of the change itself.
 * Promises: an entry holds no secret and no message's content; it is never changed. Must not decide anything.
 */
import { v7 as uuidv7 } from 'uuid'
import type { At } from '../../postgres/pool.ts'
import { storableWords } from '../../text/words.ts'
import { insertAuditEntry } from './audit.sql.ts'

/** Who acts: the address of a person, or `cli`. */
export type Actor = string

export type Deed = {
  /** Null for what belongs to no team. */
  team_id: string | null
  /** What kind of thing, and what was done: `key.create`. */
  action: string
  /** To what: an id, a name, an address. */
  subject: string
  detail?: string
}

/** A transaction of somebody's, for use cases that write their own line. */
export type By = At & { actor: Actor }

/** Adds an entry to the audit trail. */
export async function record({ tx, now, actor }: By, deed: Deed): Promise<void> {
  const { team_id, action, subject, detail = '' } = deed
  const words = { subject: storableWords(subject), detail: storableWords(detail) }
  await insertAuditEntry(tx, { id: uuidv7({ msecs: now.getTime() }), team_id, actor, action, ...words }, now)
}
