/** Queries on contact_imports: uploaded files, their progress, and the results of their slices. */
import { sql } from 'slonik'
import { boolean, type InferType, mixed, number, string } from 'yup'
import type { Tx } from '../../postgres/pool.ts'
import { countRow, row } from '../../postgres/rows.ts'
import type { CsvPlace } from './csv.ts'
import type { Fault, Mapping, Purpose } from './mapping.ts'

type NewImport = Pick<ImportRow, 'id' | 'file_name' | 'mapping' | 'records' | 'created_by' | 'encoding'> & {
  bytes: Buffer
}

/** Bytes per chunk of a stored file. */
const CHUNK_BYTES = 128 * 1024

export async function insertImport(tx: Tx, teamId: string, row: NewImport, now: Date): Promise<void> {
  await tx.query(sql.unsafe`
    insert into contact_imports (
      team_id, id, file_name, records, created_by, created_at, draft, mapping, encoding)
    values (${teamId}, ${row.id}, ${row.file_name}, ${row.records}, ${row.created_by}, ${sql.timestamp(now)},
      true, ${JSON.stringify(row.mapping)}, ${row.encoding})`)
  const chunks = Array.from({ length: Math.ceil(row.bytes.length / CHUNK_BYTES) }, (_, at) => {
    const bytes = row.bytes.subarray(at * CHUNK_BYTES, (at + 1) * CHUNK_BYTES)
    return sql.fragment`(${teamId}, ${row.id}, ${at}, ${sql.binary(bytes)})`
  })
  await tx.query(sql.unsafe`
    insert into contact_import_chunks (team_id, import_id, position, bytes)
    values ${sql.join(chunks, sql.fragment`, `)}`)
}

export const countDrafts = (tx: Tx, teamId: string) =>
  tx.oneFirst(sql.type(countRow)`
    select count(*)::int as count from contact_imports where team_id = ${teamId} and draft`)

export const importLength = (tx: Tx, teamId: string, id: string) =>
  tx.oneFirst(sql.type(countRow)`
    select coalesce(sum(octet_length(bytes)), 0)::int as count from contact_import_chunks
    where team_id = ${teamId} and import_id = ${id}`)

/** Changes the mapping of a draft. @returns false if it doesn't exist. */
export async function mapDraft(tx: Tx, teamId: string, id: string, mapping: Mapping): Promise<boolean> {
  const { rowCount } = await tx.query(sql.unsafe`
    update contact_imports set mapping = ${JSON.stringify(mapping)}
    where team_id = ${teamId} and id = ${id} and draft`)
  return rowCount > 0
}

const mappingRow = row({ mapping: mixed<Mapping>() })

/** Turns a draft into an import with no records read. @returns its mapping, or null if it doesn't exist. */
export const endDraft = (tx: Tx, teamId: string, id: string) =>
  tx.maybeOneFirst(sql.type(mappingRow)`
    update contact_imports set draft = false, records = 0
    where team_id = ${teamId} and id = ${id} and draft returning mapping`)

/** Deletes a draft with its file. @returns false if it doesn't exist. */
export async function deleteImportDraft(tx: Tx, teamId: string, id: string): Promise<boolean> {
  const { rowCount } = await tx.query(sql.unsafe`
    delete from contact_imports where team_id = ${teamId} and id = ${id} and draft`)
  return rowCount > 0
}

const fileRow = row({ id: string(), file_name: string() })

/** Returns the file names of imports of these teams, by ID. */
export async function importFileNames(tx: Tx, teams: readonly string[], ids: readonly string[]) {
  const rows = await tx.any(sql.type(fileRow)`
    select id, file_name from contact_imports
    where team_id = any(${sql.array([...teams], 'uuid')}) and id = any(${sql.array([...ids], 'uuid')})`)
  return new Map(rows.map(({ id, file_name }) => [id, file_name]))
}

const chunkRow = row({ bytes: mixed<Buffer>() })

/** Reads bytes of an import's file, fewer at its end. */
export const importBytes =
  (tx: Tx, teamId: string, importId: string) =>
  async (at: number, length: number): Promise<Buffer> => {
    const first = Math.floor(at / CHUNK_BYTES)
    const rows = await tx.any(sql.type(chunkRow)`
      select bytes from contact_import_chunks
      where team_id = ${teamId} and import_id = ${importId}
        and position between ${first} and ${Math.floor((at + length - 1) / CHUNK_BYTES)} order by position`)
    const start = at - first * CHUNK_BYTES
    return Buffer.concat(rows.map(({ bytes }) => bytes)).subarray(start, start + length)
  }

/** Stores how many records were read so far. */
export const setRecords = (tx: Tx, teamId: string, id: string, records: number) =>
  tx.query(sql.unsafe`
    update contact_imports set records = ${records} where team_id = ${teamId} and id = ${id}`)

/** Why a record was rejected. `message` is about its column, if it has one. */
export type RecordRefusal = { message: string } & Omit<Fault, 'words'>

/** A rejected record with its position in its slice, and its row in the file. */
export type RefusedRecord = RecordRefusal & { at: number; row: number }

/** `created` and `known` are IDs of new and existing contacts. `taken` is the number of accepted records. */
type SliceOutcome = {
  /** The number of records before the slice, and its position in the file. */
  first: number
  place: CsvPlace | null
  created: readonly string[]
  known: readonly string[]
  taken: number
  refused: readonly RefusedRecord[]
}

/** Adds the result of a slice. Contacts that an earlier slice stored count as repeated, not as updated. */
export async function addSlice(
  tx: Tx,
  teamId: string,
  importId: string,
  { first, place, created, known, taken, refused }: SliceOutcome,
): Promise<void> {
  const repeated = taken - created.length - known.length
  await tx.query(sql.unsafe`
    with before as (
      select count(*)::int as seen from unnest(${sql.array(known, 'uuid')}) id
      where id in (
        select unnest(contact_ids) from contact_import_slices where team_id = ${teamId} and import_id = ${importId})
    ), added as (
      insert into contact_import_slices (team_id, import_id, first_record, place, contact_ids, refused)
      values (${teamId}, ${importId}, ${first}, ${place && JSON.stringify(place)},
        ${sql.array([...created, ...known], 'uuid')}, ${refused.length === 0 ? null : JSON.stringify(refused)})
    )
    update contact_imports set created = created + ${created.length}, updated = updated + ${known.length} - seen,
      repeated = repeated + ${repeated} + seen, refused = refused + ${refused.length}
    from before where team_id = ${teamId} and id = ${importId}`)
}

const importRow = row({
  id: string(),
  file_name: string(),
  /** For a draft, all records. For an import, those read so far. */
  records: number(),
  created_by: string(),
  created_at: string(),
  created: number(),
  updated: number(),
  repeated: number(),
  refused: number(),
  /** Records that were stored or rejected. */
  done: number(),
  /** True while the file is being read. There may be more records. */
  reading: boolean(),
  /** The error that kept the file from being imported, or null. */
  fault: string().nullable(),
  /** True until a user starts the import. */
  draft: boolean(),
  mapping: mixed<Mapping>(),
  encoding: string().nullable(),
})
export type ImportRow = InferType<typeof importRow>

/** The numbers of new contacts, of existing contacts, and of records whose contact an earlier record has. */
export type Made = Pick<ImportRow, 'created' | 'updated' | 'repeated'>

const importColumns = sql.fragment`
  i.id, i.file_name, i.records, i.created_by, i.created_at, i.draft, i.mapping, i.encoding, i.created, i.updated,
  i.repeated, i.refused, i.created + i.updated + i.repeated + i.refused as done, j.fault,
  j.id is not null and j.finished_at is null and j.total is null as reading`

/** An import has the ID of its background job. */
const imports = sql.fragment`contact_imports i left join background_jobs j on j.id = i.id`

/** Lists the team's imports of contacts or of suppressions, newest first. */
export const importsOfTeam = (tx: Tx, teamId: string, purpose: Purpose, limit: number) =>
  tx.any(sql.type(importRow)`
    select ${importColumns} from ${imports}
    where i.team_id = ${teamId} and (i.mapping -> 'suppress' = 'null') = ${purpose === 'contacts'}
    order by i.id desc limit ${limit}`)

export const importById = (tx: Tx, teamId: string, id: string) =>
  tx.maybeOne(sql.type(importRow)`
    select ${importColumns} from ${imports} where i.team_id = ${teamId} and i.id = ${id}`)

export const readMapping = (tx: Tx, teamId: string, id: string) =>
  tx.oneFirst(sql.type(mappingRow)`
    select mapping from contact_imports where team_id = ${teamId} and id = ${id}`)

/** Returns the mapping of the team's last import with these columns, or null. */
export const lastMapping = (
  tx: Tx,
  teamId: string,
  { names, suppress }: Pick<Mapping, 'names' | 'suppress'>,
) =>
  tx.maybeOneFirst(sql.type(mappingRow)`
    select mapping from contact_imports
    where team_id = ${teamId} and not draft and mapping -> 'names' = ${JSON.stringify(names)}::jsonb
      and (mapping -> 'suppress' = 'null') = ${suppress === null}
    order by id desc limit 1`)

const refusedRow = row({
  first_record: number(),
  place: mixed<CsvPlace>().nullable(),
  refused: mixed<readonly RefusedRecord[]>(),
})

/** Returns the next slices with rejected records, in the order of the file. */
export const refusingSlices = (
  tx: Tx,
  teamId: string,
  id: string,
  { after, most }: { after: number; most: number },
) =>
  tx.any(sql.type(refusedRow)`
    select first_record, place, refused from contact_import_slices
    where team_id = ${teamId} and import_id = ${id} and first_record > ${after} and refused is not null
    order by first_record limit ${most}`)

/** Deletes old finished imports with their files, and old drafts. */
export const deleteImports = (tx: Tx, { before, draftsBefore }: { before: Date; draftsBefore: Date }) =>
  tx.query(sql.unsafe`
    delete from contact_imports i
    where created_at < ${sql.timestamp(before)}
        and not exists (select from background_jobs j where j.id = i.id and j.finished_at is null)
      or draft and created_at < ${sql.timestamp(draftsBefore)}`)
