/**
 * Imports contacts from a CSV file: its records become bulk upserts of a thousand each, which workers carry out.
 * Promises: the file is stored with all its parts and jobs, or not at all; a bad record costs no other; what was
 * refused can be had as a file again, with the reason beside each record. Contract §4.1.
 */
import { parse } from 'csv-parse/sync'
import { v7 as uuidv7 } from 'uuid'
import { Refusal } from '../errors.ts'
import type { At, Tx } from '../postgres/pool.ts'
import type { Producer } from '../queue/boss.ts'
import { textFault } from '../text/strings.ts'
import {
  type ImportRow,
  importById,
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

export type CsvRecord = { line: number; cells: string[] }
export type CsvTable = { header: string[]; records: CsvRecord[] }

/** Reads a CSV file. Lines may have too few or too many cells. @throws Refusal bad_request saying where it breaks. */
function readCsv(source: string): CsvTable {
  try {
    const rows = parse(source, {
      bom: true,
      info: true,
      relax_column_count: true,
      skip_empty_lines: true,
      trim: true,
    }) as unknown as { info: { lines: number }; record: string[] }[]
    const [first, ...rest] = rows
    const header = (first?.record ?? []).map((name) => (name.toLowerCase() === 'email' ? 'email' : name))
    return { header, records: rest.map(({ info, record }) => ({ line: info.lines, cells: record })) }
  } catch (error) {
    throw new Refusal('bad_request', `the file is not CSV: ${(error as Error).message}`)
  }
}

/** @throws Refusal bad_request for a file that cannot be imported at all. */
function checkTable({ header, records }: CsvTable): void {
  if (!header.includes('email')) throw new Refusal('bad_request', 'the first line must name a column email')
  if (new Set(header).size < header.length)
    throw new Refusal('bad_request', 'the first line must name each column once')
  if (records.length === 0) throw new Refusal('bad_request', 'the file has no records after its first line')
  if (records.length > MOST_RECORDS)
    throw new Refusal('bad_request', `the file must have at most ${MOST_RECORDS} records`)
}

/** A record as an item of a bulk upsert: every other column that is not empty is a property. */
function itemOf(header: readonly string[], { cells }: CsvRecord) {
  const pairs = header.map((name, at) => [name, cells[at] ?? ''] as const)
  const properties = pairs.filter(([name, value]) => name !== 'email' && name !== '' && value !== '')
  const email = pairs.find(([name]) => name === 'email')?.[1] ?? ''
  return header.length > 1 ? { email, properties: Object.fromEntries(properties) } : { email }
}

function partsOf({ header, records }: CsvTable) {
  const starts = Array.from({ length: Math.ceil(records.length / PART) }, (_, at) => at * PART)
  return starts.map((first) => ({
    id: uuidv7(),
    first,
    body: JSON.stringify({
      contacts: records.slice(first, first + PART).map((record) => itemOf(header, record)),
    }),
  }))
}

/** Stores an import and enqueues its parts. @returns its id. @throws Refusal bad_request. */
export async function startImport(
  { tx, now, queue }: At & { queue: Pick<Producer, 'enqueue'> },
  teamId: string,
  { name, source, actor }: { name: string; source: string; actor: string },
): Promise<string> {
  const fault = textFault([name, source])
  if (fault) throw new Refusal('bad_request', `the file ${fault.problem}`)
  const table = readCsv(source)
  checkTable(table)
  const parts = partsOf(table)
  const row = {
    id: uuidv7(),
    file_name: name.slice(0, 200),
    source,
    records: table.records.length,
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

/** A record that was refused, by its place in the file. */
export type RefusedRecord = StoredRefusal & { record: number }

/** How an import stands, and what it refused so far. @throws Refusal not_found. */
export async function showImport(
  tx: Tx,
  teamId: string,
  id: string,
): Promise<ImportRow & { refused: RefusedRecord[] }> {
  const row = await importById(tx, teamId, id)
  if (!row) throw new Refusal('not_found', 'there is no such import; imports are forgotten after a week')
  const results = await importResults(tx, teamId, id)
  const refused = results.flatMap(({ first_record, result }) => {
    if ('refusal' in result) {
      const length = Math.min(PART, row.records - first_record)
      return Array.from({ length }, (_, at) => ({ ...result.refusal, record: first_record + at }))
    }
    return result.items.flatMap((item, at) =>
      typeof item === 'string'
        ? []
        : [{ ...item, message: item.message.replace(PLACE, ''), record: first_record + at }],
    )
  })
  return { ...row, refused }
}

/** The refused records as they came, each with its line and the reason: to be mended and imported again. */
export async function refusedRecords(tx: Tx, teamId: string, id: string) {
  const { refused } = await showImport(tx, teamId, id)
  const { header, records } = readCsv(await importSource(tx, teamId, id))
  const rows = refused.map(({ record, message }) => {
    const { line, cells } = records[record] ?? { line: 0, cells: [] }
    return [...header.map((_, at) => cells[at] ?? ''), String(line), message]
  })
  return { header: [...header, 'line', 'reason'], rows }
}
