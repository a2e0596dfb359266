/** How long a transaction may wait: for work that is done again rather than waited for. */
import { sql } from 'slonik'
import type { Tx } from './pool.ts'

/** Bounds each lock and each statement of this transaction, in milliseconds. */
export async function limitWaits(tx: Tx, { lock, statement }: { lock: number; statement: number }) {
  await tx.query(sql.unsafe`
    select set_config('lock_timeout', ${String(lock)}, true), set_config('statement_timeout', ${String(statement)}, true)`)
}
