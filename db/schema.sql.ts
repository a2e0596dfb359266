/**
 * Checks that this version can use a database: migrated, writable and with durable settings. A database with other
 * migrations (by name or digest) is foreign. A newer schema is accepted, because older code runs on it during a
 * rollback.
 */
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { sql } from 'slonik'
import { type InferType, number, string } from 'yup'
import type { Tx } from './postgres/pool.ts'
import { row } from './postgres/rows.ts'

const DIRECTORY = new URL('./migrations/', import.meta.url)
const NAME = /^(\d{4})-([a-z0-9-]+)\.sql$/

/** `digest` is the SHA-256 of `text` in hex. */
export type Migration = { number: number; file: string; text: string; digest: string }
/** An applied migration in the database. The default catalog has no digest. */
export type Applied = { number: number; file: string; digest: string | null }

/** @throws Error if a name is invalid, or a number is missing or repeated. */
export async function migrationFiles(directory: URL = DIRECTORY): Promise<Migration[]> {
  const files = (await readdir(directory)).filter((file) => file.endsWith('.sql')).sort()
  return Promise.all(
    files.map(async (file, index) => {
      const number = Number(NAME.exec(file)?.[1])
      if (number !== index + 1) throw new Error(`migrations must be numbered without gaps: ${file}`)
      // Git on Windows can change line endings.
      const text = (await readFile(new URL(file, directory), 'utf8')).replaceAll('\r\n', '\n')
      return { number, file, text, digest: createHash('sha256').update(text).digest('hex') }
    }),
  )
}

const OTHER_HISTORY =
  'a database works with the release that created it (0.1.0 or later) and with later ones. Start such a release, or use an empty database (with `npm start`, delete .data)'

/** Returns the reason why a database with these migrations isn't ours, with the necessary action, or null. */
export function historyFault(files: readonly Migration[], applied: readonly Applied[]): string | null {
  const byNumber = new Map(applied.map((each) => [each.number, each]))
  for (const { number, file, digest } of files) {
    const there = byNumber.get(number)
    if (there && (there.file !== file || there.digest !== digest))
      return `the database was made by another version's schema (its ${there.file} is not this version's ${file}): ${OTHER_HISTORY}`
  }
  return null
}

const appliedRow = row({ number: number(), file: string(), digest: string().nullable() })

/** Returns the reason why this version can't work with the schema, with the necessary action, or null. */
export async function schemaFault(tx: Tx): Promise<string | null> {
  const files = await migrationFiles()
  const made = await tx.oneFirst(sql.type(row({ made: string().nullable() }))`
    select to_regclass('schema_migrations')::text as made`)
  // As JSON, because tables of early checkouts don't have the column.
  const applied =
    made === null
      ? []
      : await tx.any(sql.type(appliedRow)`
    select number, file, to_jsonb(m) ->> 'digest' as digest from schema_migrations m`)
  const foreign = historyFault(files, applied)
  if (foreign !== null) return foreign
  const missing = files.find((each) => !applied.some(({ number }) => number === each.number))
  return missing
    ? `the database is not migrated to this version (${missing.file} is missing): run \`node db/migrate.ts\``
    : null
}

const serverRow = row({
  transaction_read_only: string(),
  fsync: string(),
  full_page_writes: string(),
  synchronous_commit: string(),
})

const clockRow = row({ version: string(), at: string() })

export const serverClock = async (tx: Tx): Promise<InferType<typeof clockRow>> =>
  tx.one(sql.type(clockRow)`
    select current_setting('server_version') as version, clock_timestamp() as at`)

export const serverSettings = async (tx: Tx): Promise<InferType<typeof serverRow>> =>
  tx.one(sql.type(serverRow)`
    select current_setting('transaction_read_only') as transaction_read_only, current_setting('fsync') as fsync,
      current_setting('full_page_writes') as full_page_writes,
      current_setting('synchronous_commit') as synchronous_commit`)
