/** Rows of contact_imports, and the bulk upserts that each is carried out by. */
import { sql } from 'slonik'
import { array, type InferType, mixed, number, object, string } from 'yup'
import type { Tx } from '../postgres/pool.ts'
import type { UpsertResult } from './upserts.sql.ts'

export type NewImport = {
  id: string
  file_name: string
  source: string
  records: number
  lines: number[]
  created_by: string
}

/** Stores an import. */
export async function insertImport(tx: Tx, teamId: string, row: NewImport, now: Date): Promise<void> {
  await tx.query(sql.unsafe`
    insert into contact_imports (team_id, id, file_name, source, records, lines, created_by, created_at)
    values (${teamId}, ${row.id}, ${row.file_name}, ${row.source}, ${row.records}, ${sql.array(row.lines, 'int4')}, ${row.created_by},
      ${sql.timestamp(now)})`)
}

/** A bulk upsert that carries out a part of an import. `first` is the place of its first record. */
export type ImportPart = { id: string; first: number; body: string }

/** Stores the parts of an import, in one statement. */
export async function insertImportParts(
  tx: Tx,
  teamId: string,
  importId: string,
  parts: readonly ImportPart[],
  now: Date,
): Promise<void> {
  await tx.query(sql.unsafe`
    insert into contact_upserts (team_id, id, body, import_id, first_record, created_at)
    select ${teamId}, id, body, ${importId}, first, ${sql.timestamp(now)}
    from ${sql.unnest(
      parts.map(({ id, first, body }) => [id, first, body]),
      ['uuid', 'int4', 'text'],
    )} as part (id, first, body)`)
}

const importRow = object({
  id: string().defined(),
  file_name: string().defined(),
  records: number().defined(),
  created_by: string().defined(),
  created_at: string().defined(),
  /** Records whose part a worker has carried out. */
  done: number().defined(),
})
export type ImportRow = InferType<typeof importRow>

// A part holds the records up to the next part's first.
const importColumns = sql.fragment`
  i.id, i.file_name, i.records, i.created_by, i.created_at, (
    select coalesce(sum(p.next - p.first_record) filter (where p.finished_at is not null), 0)::int
    from (
      select first_record, finished_at, lead(first_record, 1, i.records) over (order by first_record) as next
      from contact_upserts where team_id = i.team_id and import_id = i.id) p) as done`

/** A team's imports, newest first. */
export async function importsOfTeam(tx: Tx, teamId: string, limit: number): Promise<readonly ImportRow[]> {
  return tx.any(sql.type(importRow)`
    select ${importColumns} from contact_imports i where i.team_id = ${teamId} order by i.id desc limit ${limit}`)
}

/** An import, or null without one. */
export async function importById(tx: Tx, teamId: string, id: string): Promise<ImportRow | null> {
  return tx.maybeOne(sql.type(importRow)`
    select ${importColumns} from contact_imports i where i.team_id = ${teamId} and i.id = ${id}`)
}

const sourceRow = object({ source: string().defined() })

/** The file as it came. */
export async function importSource(tx: Tx, teamId: string, id: string): Promise<string> {
  const { source } = await tx.one(sql.type(sourceRow)`
    select source from contact_imports where team_id = ${teamId} and id = ${id}`)
  return source
}

const linesRow = object({ lines: array(number().defined()).defined().nullable() })

/** The line in the file that each record begins in. */
export async function importLines(tx: Tx, teamId: string, id: string): Promise<readonly number[]> {
  const { lines } = await tx.one(sql.type(linesRow)`
    select lines from contact_imports where team_id = ${teamId} and id = ${id}`)
  return lines ?? []
}

const resultRow = object({ first_record: number().defined(), result: mixed<UpsertResult>().defined() })

/** What became of the parts that are carried out, in the order of the file. */
export async function importResults(
  tx: Tx,
  teamId: string,
  id: string,
): Promise<readonly InferType<typeof resultRow>[]> {
  return tx.any(sql.type(resultRow)`
    select first_record, result from contact_upserts
    where team_id = ${teamId} and import_id = ${id} and finished_at is not null order by first_record`)
}

/** Deletes old imports with their parts. */
export async function deleteImports(tx: Tx, before: Date): Promise<void> {
  await tx.query(sql.unsafe`delete from contact_imports where created_at < ${sql.timestamp(before)}`)
}
