/**
 * What a database must be for this version: migrated, writable, and set so that it keeps what it has committed.
 * Promises: only a schema that lacks a migration counts as not migrated. A newer one will do, because older code runs
 * on it while a deployment is rolled back. Must not change anything.
 */
import { readdir } from 'node:fs/promises'
import { sql } from 'slonik'
import { type InferType, number, object, string } from 'yup'
import type { Tx } from './postgres/pool.ts'

const DIRECTORY = new URL('./migrations/', import.meta.url)
const NAME = /^(\d{4})-([a-z0-9-]+)\.sql$/

export type Migration = { number: number; file: string }

/** The migration files in order. @throws Error when a name is malformed or a number missing or repeated. */
export async function migrationFiles(directory: URL = DIRECTORY): Promise<Migration[]> {
  const files = (await readdir(directory)).filter((file) => file.endsWith('.sql')).sort()
  return files.map((file, index) => {
    const number = Number(NAME.exec(file)?.[1])
    if (number !== index + 1) throw new Error(`migrations must be numbered without gaps: ${file}`)
    return { number, file }
  })
}

const appliedRow = object({ number: number().defined() })

/** The files that this database lacks. */
export async function missingMigrations(tx: Tx): Promise<string[]> {
  const files = await migrationFiles()
  const made = await tx.oneFirst(sql.type(object({ made: string().defined().nullable() }))`
    select to_regclass('schema_migrations')::text as made`)
  if (made === null) return files.map(({ file }) => file)
  const applied = await tx.any(sql.type(appliedRow)`select number from schema_migrations`)
  const done = new Set(applied.map(({ number }) => number))
  return files.filter(({ number }) => !done.has(number)).map(({ file }) => file)
}

const serverRow = object({
  transaction_read_only: string().defined(),
  fsync: string().defined(),
  full_page_writes: string().defined(),
  synchronous_commit: string().defined(),
})

const clockRow = object({ version: string().defined(), at: string().defined() })

/** The server's version and its clock. */
export const serverClock = async (tx: Tx): Promise<InferType<typeof clockRow>> =>
  tx.one(sql.type(clockRow)`
    select current_setting('server_version') as version, clock_timestamp() as at`)

/** The server's settings that matter to us. */
export const serverSettings = async (tx: Tx): Promise<InferType<typeof serverRow>> =>
  tx.one(sql.type(serverRow)`
    select current_setting('transaction_read_only') as transaction_read_only, current_setting('fsync') as fsync,
      current_setting('full_page_writes') as full_page_writes,
      current_setting('synchronous_commit') as synchronous_commit`)
