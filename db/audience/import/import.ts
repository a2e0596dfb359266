/**
 * Imports contacts from a CSV file, as long work (db/work): the file is read in slices into parts of a thousand records
 * at most, then each part is a bulk upsert.
 * Promises: nothing is stored of a file that cannot be read to its end; a bad record costs no other; what was refused
 * can be had as a file again, with the reason beside each record.
 */
import { v7 as uuidv7 } from 'uuid'
import { Refusal } from '../../errors.ts'
import type { At, Tx } from '../../postgres/pool.ts'
import type { Secrets } from '../../process/secrets.ts'
import { textFault } from '../../text/strings.ts'
import { readItems, upsertContacts } from '../contacts/upsert.ts'
import { finishUpsert, lockUpsert, type StoredRefusal } from '../contacts/upserts.sql.ts'
import { type CsvPlace, type CsvTable, itemOf, REFUSED_COLUMNS, readSlice } from './csv.ts'
import {
  addRecords,
  deleteParts,
  type ImportRow,
  importById,
  importBytes,
  importLines,
  importResults,
  insertImport,
  insertImportParts,
  nextPart,
} from './imports.sql.ts'

const PART = 1_000
const MOST_RECORDS = 100_000
/** Where an item stands in a bulk call: of no use to a person with a file. */
const PLACE = /^contacts\[\d+\]\./

/** @throws Refusal bad_request for a file that cannot be imported at all. @param total its records so far. */
function checkTable({ header, records }: CsvTable, total: number, isLast: boolean): void {
  if (!header.includes('email')) throw new Refusal('bad_request', 'the first line must name a column email')
  if (new Set(header).size < header.length)
    throw new Refusal('bad_request', 'the first line must name each column once')
  if (total === 0 && isLast) throw new Refusal('bad_request', 'the file has no records after its first line')
  if (total > MOST_RECORDS)
    throw new Refusal('bad_request', `the file must have at most ${MOST_RECORDS} records`)
  const wide = records.find(({ cells }) => cells.slice(header.length).some((cell) => cell !== ''))
  if (wide) {
    const cells = `${wide.cells.length} cells, but the first line names ${header.length} columns`
    throw new Refusal(
      'bad_request',
      `line ${wide.line} has ${cells}: put a value with separators into quotes`,
    )
  }
}

/** The records as bulk upserts. @param first the place of the first record in the file. */
const partsOf = ({ header, records }: CsvTable, first: number) =>
  Array.from({ length: Math.ceil(records.length / PART) }, (_, part) => {
    const contacts = records.slice(part * PART, (part + 1) * PART).map((record) => itemOf(header, record))
    return { id: uuidv7(), first: first + part * PART, body: JSON.stringify({ contacts }) }
  })

/** A file as it came. @throws Refusal bad_request when its text cannot be stored. */
export function importOf({ name, source }: { name: string; source: string }) {
  const fault = textFault([name, source])
  if (fault) throw new Refusal('bad_request', `the file ${fault.problem}`)
  return { id: uuidv7(), file_name: name.slice(0, 200), bytes: Buffer.from(source) }
}

/** Stores an import that is to be begun. */
export const storeImport = async (
  { tx, now }: At,
  teamId: string,
  given: ReturnType<typeof importOf>,
  actor: string,
): Promise<void> => insertImport(tx, teamId, { ...given, created_by: actor }, now)

/** Where an import stands: in the file, or (`place` null) at its parts. */
export type ImportCursor = { place: CsvPlace | null; records: number }

type Slice = { cursor: ImportCursor | null; upserted: number; refused: number; fault?: string }

async function readPart(
  { tx, now }: At,
  teamId: string,
  id: string,
  at: ImportCursor | null,
): Promise<Slice> {
  const read = importBytes(tx, teamId, id)
  const { table, place } = await readSlice(read, at?.place ?? null)
  const before = at?.records ?? 0
  const records = before + table.records.length
  checkTable(table, records, place === null)
  const lines = table.records.map(({ line }) => line)
  await insertImportParts(tx, teamId, id, partsOf(table, before), now)
  await addRecords(tx, teamId, id, lines)
  return { cursor: { place, records }, upserted: 0, refused: 0 }
}

/**
 * Does the next slice of an import: reads some of the file, or upserts a part.
 * @throws Refusal bad_request when the file's first slice cannot be imported; a later one that cannot is a `fault`.
 */
export async function importSlice(
  { secrets, ...at }: At & { secrets: Pick<Secrets, 'signatures'> },
  teamId: string,
  id: string,
  cursor: ImportCursor | null,
): Promise<Slice> {
  if (cursor === null) return readPart(at, teamId, id, null)
  if (cursor.place !== null) {
    try {
      return await readPart(at, teamId, id, cursor)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      await deleteParts(at.tx, teamId, id)
      return { cursor: null, upserted: 0, refused: 0, fault: error.message }
    }
  }
  const part = await nextPart(at.tx, teamId, id)
  const body = part && (await lockUpsert(at.tx, teamId, part))
  if (!part || body === null) return { cursor: null, upserted: 0, refused: 0 }
  const items = readItems(body)
  const result = await upsertContacts({ ...at, secrets }, teamId, items)
  await finishUpsert(at.tx, teamId, part, result, at.now)
  const refused =
    'refusal' in result ? items.length : result.items.filter((item) => typeof item !== 'string').length
  return { cursor, upserted: items.length, refused }
}

/** A record that was refused, by its place among the records and by its line in the file. */
export type RefusedRecord = StoredRefusal & { record: number; line: number }

/** How an import stands, and what it refused so far. @throws Refusal not_found. */
export async function showImport(
  tx: Tx,
  teamId: string,
  id: string,
): Promise<ImportRow & { refused: RefusedRecord[] }> {
  const row = await importById(tx, teamId, id)
  if (!row) throw new Refusal('not_found', 'there is no such import; imports are forgotten after a week')
  const results = await importResults(tx, teamId, id)
  const lines = await importLines(tx, teamId, id)
  // Imports from before lines were kept: a record a line, after the first.
  const placed = (refusal: StoredRefusal, record: number): RefusedRecord => ({
    ...refusal,
    message: refusal.message.replace(PLACE, ''),
    record,
    line: lines[record] ?? record + 2,
  })
  const refused = results.flatMap(({ first_record, length, result }) => {
    if ('refusal' in result) {
      return Array.from({ length }, (_, at) => placed(result.refusal, first_record + at))
    }
    return result.items.flatMap((item, at) =>
      typeof item === 'string' ? [] : [placed(item, first_record + at)],
    )
  })
  return { ...row, refused }
}

/** The refused records as they came, each with its line and the reason: to be corrected and imported again. */
export async function refusedRecords(tx: Tx, teamId: string, id: string) {
  const { refused } = await showImport(tx, teamId, id)
  const read = importBytes(tx, teamId, id)
  const start = await readSlice(read, null)
  const { header } = start.table
  async function* rows() {
    let [slice, first] = [start, 0]
    for (const { record, line, message } of refused) {
      while (record >= first + slice.table.records.length && slice.place !== null) {
        first += slice.table.records.length
        slice = await readSlice(read, slice.place)
      }
      const cells = slice.table.records[record - first]?.cells ?? []
      yield [...header.map((_, at) => cells[at] ?? ''), String(line), message]
    }
  }
  return { header: [...header, ...REFUSED_COLUMNS], rows: rows() }
}
