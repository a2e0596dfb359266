/** The row that shows whether SECRET_KEY is the one that this database was used with, and its queries. */
import { sql } from 'slonik'
import { mixed } from 'yup'
import type { Tx } from '../postgres/pool.ts'
import { row } from '../postgres/rows.ts'

const canaryRow = row({ sealed: mixed<Buffer>() })

/** The sealed text, or null in a database that no process has used yet. */
export const canaryOf = (tx: Tx) => tx.maybeOneFirst(sql.type(canaryRow)`select sealed from secret_canary`)

/** Stores a sealed text where there is none. Of several processes that do so at once, the first one's stays. */
export const insertCanary = (tx: Tx, sealed: Buffer) =>
  tx.query(sql.unsafe`
    insert into secret_canary (sealed) values (${sql.binary(sealed)}) on conflict do nothing`)

/** Puts another sealed text in its place. */
export const replaceCanary = (tx: Tx, sealed: Buffer) =>
  tx.query(sql.unsafe`update secret_canary set sealed = ${sql.binary(sealed)}`)
