/** Rows of contact_imports, and the bulk upserts that each is carried out by. */
import { sql } from 'slonik'
import { array, boolean, type InferType, mixed, number, object, string } from 'yup'
import type { Tx } from '../../postgres/pool.ts'
import type { UpsertResult } from '../contacts/upserts.sql.ts'
import type { Mapping } from './mapping.ts'

export type NewImport = {
  id: string
  file_name: string
  bytes: Buffer
  encoding: string
  mapping: Mapping
  /** How many the file has. */
  records: number
  created_by: string
}

/** How long the chunks are that a file lies in, in bytes. */
const CHUNK = 128 * 1024

/** Stores an import as a draft, and its file. */
export async function insertImport(tx: Tx, teamId: string, row: NewImport, now: Date): Promise<void> {
  await tx.query(sql.unsafe`
    insert into contact_imports (
      team_id, id, file_name, records, row_numbers, created_by, created_at, draft, mapping, encoding)
    values (${teamId}, ${row.id}, ${row.file_name}, ${row.records}, '{}', ${row.created_by}, ${sql.timestamp(now)},
      true, ${JSON.stringify(row.mapping)}, ${row.encoding})`)
  const chunks = Array.from({ length: Math.ceil(row.bytes.length / CHUNK) }, (_, at) => {
    const bytes = row.bytes.subarray(at * CHUNK, (at + 1) * CHUNK)
    return sql.fragment`(${teamId}, ${row.id}, ${at}, ${sql.binary(bytes)})`
  })
  await tx.query(sql.unsafe`
    insert into contact_import_chunks (team_id, import_id, position, bytes)
    values ${sql.join(chunks, sql.fragment`, `)}`)
}

const countRow = object({ count: number().defined() })

/** How many drafts a team has. */
export async function countDrafts(tx: Tx, teamId: string): Promise<number> {
  const { count } = await tx.one(sql.type(countRow)`
    select count(*)::int as count from contact_imports where team_id = ${teamId} and draft`)
  return count
}

/** How long an import's file is, in bytes. */
export async function importLength(tx: Tx, teamId: string, id: string): Promise<number> {
  const { count } = await tx.one(sql.type(countRow)`
    select coalesce(sum(octet_length(bytes)), 0)::int as count from contact_import_chunks
    where team_id = ${teamId} and import_id = ${id}`)
  return count
}

const idRow = object({ id: string().defined() })

/** Changes what a draft's columns become. @returns whether there is such a draft. */
export async function mapDraft(tx: Tx, teamId: string, id: string, mapping: Mapping): Promise<boolean> {
  const row = await tx.maybeOne(sql.type(idRow)`
    update contact_imports set mapping = ${JSON.stringify(mapping)}
    where team_id = ${teamId} and id = ${id} and draft returning id`)
  return row !== null
}

/** Makes a draft an import of which no record was read yet. @returns whether there was such a draft. */
export async function endDraft(tx: Tx, teamId: string, id: string): Promise<boolean> {
  const row = await tx.maybeOne(sql.type(idRow)`
    update contact_imports set draft = false, records = 0
    where team_id = ${teamId} and id = ${id} and draft returning id`)
  return row !== null
}

/** Deletes a draft with its file. @returns whether there was one. */
export async function deleteDraft(tx: Tx, teamId: string, id: string): Promise<boolean> {
  const row = await tx.maybeOne(sql.type(idRow)`
    delete from contact_imports where team_id = ${teamId} and id = ${id} and draft returning id`)
  return row !== null
}

const chunkRow = object({ bytes: mixed<Buffer>().defined() })

/** Reads bytes of an import's file; fewer than asked for at its end. */
export const importBytes =
  (tx: Tx, teamId: string, importId: string) =>
  async (at: number, length: number): Promise<Buffer> => {
    const first = Math.floor(at / CHUNK)
    const rows = await tx.any(sql.type(chunkRow)`
      select bytes from contact_import_chunks
      where team_id = ${teamId} and import_id = ${importId}
        and position between ${first} and ${Math.floor((at + length - 1) / CHUNK)} order by position`)
    const start = at - first * CHUNK
    return Buffer.concat(rows.map(({ bytes }) => bytes)).subarray(start, start + length)
  }

/** Adds records that were read, by their rows in the file. */
export async function addRecords(tx: Tx, teamId: string, id: string, rows: readonly number[]): Promise<void> {
  await tx.query(sql.unsafe`
    update contact_imports set records = records + ${rows.length},
      row_numbers = row_numbers || ${sql.array([...rows], 'int4')}
    where team_id = ${teamId} and id = ${id}`)
}

/** The next part of an import that is to be upserted; null when all are. */
export async function nextPart(tx: Tx, teamId: string, importId: string): Promise<string | null> {
  const row = await tx.maybeOne(sql.type(idRow)`
    select id from contact_upserts
    where team_id = ${teamId} and import_id = ${importId} and finished_at is null
    order by first_record limit 1`)
  return row?.id ?? null
}

/** Forgets the parts of a file that cannot be read to its end: none of them was upserted. */
export async function deleteParts(tx: Tx, teamId: string, importId: string): Promise<void> {
  await tx.query(sql.unsafe`
    delete from contact_upserts where team_id = ${teamId} and import_id = ${importId}`)
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
  /** Those that were read so far; of a draft all that it has. */
  records: number().defined(),
  created_by: string().defined(),
  created_at: string().defined(),
  /** Records whose part a worker has carried out. */
  done: number().defined(),
  /** Whether the file is still being read: there may be more records. */
  reading: boolean().defined(),
  /** Why nothing of it was imported; null when it was, or is to be. */
  fault: string().defined().nullable(),
  /** Whether nobody has started it yet. */
  draft: boolean().defined(),
  mapping: mixed<Mapping>().defined(),
  encoding: string().defined().nullable(),
})
export type ImportRow = InferType<typeof importRow>

// A part holds the records up to the next part's first.
const importColumns = sql.fragment`
  i.id, i.file_name, i.records, i.created_by, i.created_at, i.draft, i.mapping, i.encoding, (
    select coalesce(sum(p.next - p.first_record) filter (where p.finished_at is not null), 0)::int
    from (
      select first_record, finished_at, lead(first_record, 1, i.records) over (order by first_record) as next
      from contact_upserts where team_id = i.team_id and import_id = i.id) p) as done,
  -- Imports from before long work have none: they were read at once.
  coalesce(w.finished_at is null and w.total is null and w.id is not null, false) as reading, w.fault`

/** An import has the id of its work. */
const imports = sql.fragment`contact_imports i left join works w on w.id = i.id`

/** A team's imports, newest first. */
export async function importsOfTeam(tx: Tx, teamId: string, limit: number): Promise<readonly ImportRow[]> {
  return tx.any(sql.type(importRow)`
    select ${importColumns} from ${imports} where i.team_id = ${teamId} order by i.id desc limit ${limit}`)
}

/** An import, or null without one. */
export async function importById(tx: Tx, teamId: string, id: string): Promise<ImportRow | null> {
  return tx.maybeOne(sql.type(importRow)`
    select ${importColumns} from ${imports} where i.team_id = ${teamId} and i.id = ${id}`)
}

const rowsRow = object({ rows: array(number().defined()).defined() })

const mappingRow = object({ mapping: mixed<Mapping>().defined() })

/** What an import's columns become. */
export async function mappingOf(tx: Tx, teamId: string, id: string): Promise<Mapping> {
  const { mapping } = await tx.one(sql.type(mappingRow)`
    select mapping from contact_imports where team_id = ${teamId} and id = ${id}`)
  return mapping
}

/** What was chosen for the team's last import of a file with these columns; null when it has none lately. */
export async function lastMapping(
  tx: Tx,
  teamId: string,
  { names, suppress }: Pick<Mapping, 'names' | 'suppress'>,
): Promise<Mapping | null> {
  const row = await tx.maybeOne(sql.type(mappingRow)`
    select mapping from contact_imports
    where team_id = ${teamId} and not draft and mapping -> 'names' = ${JSON.stringify(names)}::jsonb
      and (mapping -> 'suppress' = 'null') = ${suppress === null}
    order by id desc limit 1`)
  return row?.mapping ?? null
}

/** The row in the file that each record stands in. */
export async function importRows(tx: Tx, teamId: string, id: string): Promise<readonly number[]> {
  const { rows } = await tx.one(sql.type(rowsRow)`
    select row_numbers as rows from contact_imports where team_id = ${teamId} and id = ${id}`)
  return rows
}

const resultRow = object({
  first_record: number().defined(),
  length: number().defined(),
  result: mixed<UpsertResult>().defined(),
})

/** What became of the parts that are carried out, in the order of the file. */
export async function importResults(
  tx: Tx,
  teamId: string,
  id: string,
): Promise<readonly InferType<typeof resultRow>[]> {
  return tx.any(sql.type(resultRow)`
    select first_record, length, result from (
      select p.first_record, p.finished_at, p.result,
        lead(p.first_record, 1, i.records) over (order by p.first_record) - p.first_record as length
      from contact_upserts p join contact_imports i on i.team_id = p.team_id and i.id = p.import_id
      where p.team_id = ${teamId} and p.import_id = ${id}) part
    where finished_at is not null order by first_record`)
}

/** Deletes old imports with their files and parts, and drafts that nobody has started by then. */
export async function deleteImports(
  tx: Tx,
  { before, draftsBefore }: { before: Date; draftsBefore: Date },
): Promise<void> {
  await tx.query(sql.unsafe`
    delete from contact_imports where created_at < ${sql.timestamp(before)}
      or draft and created_at < ${sql.timestamp(draftsBefore)}`)
}
