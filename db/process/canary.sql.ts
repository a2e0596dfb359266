/** Queries for the row that tells whether SECRET_KEY is the key this database was first used with. */
import { sql } from 'slonik'
import { mixed } from 'yup'
import type { Tx } from '../postgres/pool.ts'
import { row } from '../postgres/rows.ts'

const canaryRow = row({ sealed: mixed<Buffer>() })

/** Returns the encrypted text, or null in a database that no process has used yet. */
export const readCanary = (tx: Tx) => tx.maybeOneFirst(sql.type(canaryRow)`select sealed from secret_canary`)

/**
 * Stores an encrypted text if the table is empty. If several processes do this at once, the first one wins.
 */
export const insertCanary = (tx: Tx, sealed: Buffer) =>
  tx.query(sql.unsafe`
    insert into secret_canary (sealed) values (${sql.binary(sealed)}) on conflict do nothing`)

/** Replaces the encrypted text. */
export const replaceCanary = (tx: Tx, sealed: Buffer) =>
  tx.query(sql.unsafe`update secret_canary set sealed = ${sql.binary(sealed)}`)
