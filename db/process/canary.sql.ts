/** Queries for the row that shows whether SECRET_KEY is the key of this database. */
import { sql } from 'slonik'
import { mixed } from 'yup'
import type { Tx } from '../postgres/pool.ts'
import { row } from '../postgres/rows.ts'

const canaryRow = row({ sealed: mixed<Buffer>() })

/** Returns the encrypted text, or null in a database that no process has used yet. */
export const readCanary = (tx: Tx) => tx.maybeOneFirst(sql.type(canaryRow)`select sealed from secret_canary`)

/** Stores an encrypted text if the table is empty. The first process wins. */
export const insertCanary = (tx: Tx, sealed: Buffer) =>
  tx.query(sql.unsafe`
    insert into secret_canary (sealed) values (${sql.binary(sealed)}) on conflict do nothing`)

export const replaceCanary = (tx: Tx, sealed: Buffer) =>
  tx.query(sql.unsafe`update secret_canary set sealed = ${sql.binary(sealed)}`)
