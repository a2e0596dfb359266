/**
 * Imports contacts from a CSV file: its records become bulk upserts of a thousand each, which workers carry out.
 * Promises: the file is read in slices, so that nobody waits for it; it is stored with all its parts and jobs, or not
 * at all; a bad record costs no other; what was
 * refused can be had as a file again, with the reason beside each record.
 */
import { setImmediate as turn } from 'node:timers/promises'
import { v7 as uuidv7 } from 'uuid'
import { Refusal } from '../errors.ts'
import type { At, Tx } from '../postgres/pool.ts'
import type { Producer } from '../queue/boss.ts'
import { textFault } from '../text/strings.ts'
import { type CsvTable, itemOf, REFUSED_COLUMNS, readCsv } from './csv.ts'
import {
  type ImportRow,
  importById,
  importLines,
  importResults,
  importSource,
  insertImport,
  insertImportParts,
} from './imports.sql.ts'
import type { StoredRefusal } from './upserts.sql.ts'

const PART = 1_000
const MOST_RECORDS = 100_000
/** Where an item stands in a bulk call: of no use to whoever has a file. */
const PLACE = /^contacts\[\d+\]\./

/** @throws Refusal bad_request for a file that cannot be imported at all. */
function checkTable({ header, records }: CsvTable): void {
  if (!header.includes('email')) throw new Refusal('bad_request', 'the first line must name a column email')
  if (new Set(header).size < header.length)
    throw new Refusal('bad_request', 'the first line must name each column once')
  if (records.length === 0) throw new Refusal('bad_request', 'the file has no records after its first line')
  if (records.length > MOST_RECORDS)
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

/** The records as bulk upserts; others have a turn after each. */
async function partsOf({ header, records }: CsvTable) {
  const parts: { id: string; first: number; body: string }[] = []
  for (let first = 0; first < records.length; first += PART) {
    const contacts = records.slice(first, first + PART).map((record) => itemOf(header, record))
    parts.push({ id: uuidv7(), first, body: JSON.stringify({ contacts }) })
    await turn()
  }
  return parts
}

/** A file that is read: what an import stores of it. */
export type ReadFile = {
  name: string
  source: string
  lines: number[]
  parts: Awaited<ReturnType<typeof partsOf>>
}

/** Reads a file, before a transaction is begun. @throws Refusal bad_request. */
export async function readFile({ name, source }: { name: string; source: string }): Promise<ReadFile> {
  const fault = textFault([name, source])
  if (fault) throw new Refusal('bad_request', `the file ${fault.problem}`)
  const table = await readCsv(source)
  checkTable(table)
  return { name, source, lines: table.records.map(({ line }) => line), parts: await partsOf(table) }
}

/** Stores an import and enqueues its parts. @returns its id. */
export async function startImport(
  { tx, now, queue }: At & { queue: Pick<Producer, 'enqueue'> },
  teamId: string,
  { name, source, lines, parts }: ReadFile,
  actor: string,
): Promise<string> {
  const row = {
    id: uuidv7(),
    file_name: name.slice(0, 200),
    source,
    records: lines.length,
    lines,
    created_by: actor,
  }
  await insertImport(tx, teamId, row, now)
  await insertImportParts(tx, teamId, row.id, parts, now)
  await queue.enqueue(
    tx,
    'upsert-contacts',
    parts.map(({ id }) => ({ team_id: teamId, upsert_id: id })),
  )
  return row.id
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
  const refused = results.flatMap(({ first_record, result }) => {
    if ('refusal' in result) {
      const length = Math.min(PART, row.records - first_record)
      return Array.from({ length }, (_, at) => placed(result.refusal, first_record + at))
    }
    return result.items.flatMap((item, at) =>
      typeof item === 'string' ? [] : [placed(item, first_record + at)],
    )
  })
  return { ...row, refused }
}

/** The refused records as they came, each with its line and the reason: to be mended and imported again. */
export async function refusedRecords(tx: Tx, teamId: string, id: string) {
  const { refused } = await showImport(tx, teamId, id)
  const { header, records } = await readCsv(await importSource(tx, teamId, id))
  const rows = refused.map(({ record, line, message }) => {
    const { cells } = records[record] ?? { cells: [] }
    return [...header.map((_, at) => cells[at] ?? ''), String(line), message]
  })
  return { header: [...header, ...REFUSED_COLUMNS], rows }
}
