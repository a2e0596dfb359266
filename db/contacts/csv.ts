/**
 * Reads CSV files of contacts, as spreadsheets and other services save them and as we export them.
 * Promises: a large file is read in slices, between which everybody else has a turn; nothing in it is dropped without a
 * word; our own files come back as they were, without the columns and quotes that we had added.
 */
import { setImmediate as turn } from 'node:timers/promises'
import { type Parser, parse } from 'csv-parse'
import { Refusal } from '../errors.ts'
import { isObject } from '../text/fields.ts'

/** `line`: where a record begins in the file, as editors count. */
export type CsvRecord = { line: number; cells: string[] }
export type CsvTable = { header: string[]; records: CsvRecord[] }

/** How many characters are parsed before others have a turn. */
const SLICE = 64 * 1024
const SEPARATORS = [',', ';', '\t'] as const

/** The separator that stands most often in the first line, outside of quotes. */
function separatorOf(source: string): string {
  const counts = new Map<string, number>(SEPARATORS.map((separator) => [separator, 0]))
  let quoted = false
  for (const character of source) {
    if (character === '"') quoted = !quoted
    else if (!quoted && (character === '\n' || character === '\r')) break
    else if (!quoted && counts.has(character)) counts.set(character, (counts.get(character) ?? 0) + 1)
  }
  return SEPARATORS.toSorted((a, b) => (counts.get(b) ?? 0) - (counts.get(a) ?? 0))[0] ?? ','
}

type Row = { info: { lines: number }; record: string[] }

const lineBreaks = (cells: readonly string[]): number =>
  cells.reduce((sum, cell) => sum + cell.split(/\r\n|\r|\n/).length - 1, 0)

function taken(parser: Parser, rows: CsvRecord[]): void {
  for (let row = parser.read() as Row | null; row !== null; row = parser.read() as Row | null) {
    const { info, record } = row
    rows.push({ line: info.lines - lineBreaks(record), cells: record.map((cell) => cell.trim()) })
  }
}

async function rowsOf(source: string): Promise<CsvRecord[]> {
  const rows: CsvRecord[] = []
  const parser = parse({
    bom: true,
    delimiter: separatorOf(source),
    info: true,
    relax_column_count: true,
    skip_empty_lines: true,
  })
  const ended = new Promise<void>((resolve, reject) => parser.once('end', resolve).once('error', reject))
  const failed = ended.then(
    () => false,
    () => true,
  )
  parser.on('readable', () => taken(parser, rows))
  for (let at = 0; at < source.length; at += SLICE) {
    parser.write(source.slice(at, at + SLICE))
    await turn()
    if (parser.errored) break
  }
  parser.end()
  if (await failed) await ended
  return rows
}

/** What an exported cell has before it where a spreadsheet would read a formula (the dashboard's csv.ts). */
const TAMED = /^'+[=+\-@\t\r]/
const untamed = (cell: string): string => (TAMED.test(cell) ? cell.slice(1) : cell)

/** Columns that we put behind those of a file whose records were refused. */
export const REFUSED_COLUMNS = ['line', 'reason'] as const
/** The columns of our export; what is free-form stands in the last one, as JSON. */
export const EXPORT_COLUMNS = ['email', 'status', 'topics', 'added', 'changed', 'id', 'properties'] as const

const isExport = (header: readonly string[]): boolean => EXPORT_COLUMNS.every((name) => header.includes(name))

/** A table without what we had added to it ourselves. */
function asItWas({ header, records }: CsvTable): CsvTable {
  const refused = REFUSED_COLUMNS.every((name, at) => header.at(at - REFUSED_COLUMNS.length) === name)
  if (!refused && !isExport(header)) return { header, records }
  const width = refused ? header.length - REFUSED_COLUMNS.length : header.length
  return {
    header: header.slice(0, width).map(untamed),
    records: records.map(({ line, cells }) => ({
      line,
      cells: refused
        ? [...cells.slice(0, width), ...cells.slice(header.length)].map(untamed)
        : cells.map(untamed),
    })),
  }
}

/** Reads a CSV file. @throws Refusal bad_request saying where it breaks. */
export async function readCsv(source: string): Promise<CsvTable> {
  try {
    const [first, ...records] = await rowsOf(source)
    const header = (first?.cells ?? []).map((name) => (name.toLowerCase() === 'email' ? 'email' : name))
    while (header.at(-1) === '') header.pop()
    return asItWas({ header, records })
  } catch (error) {
    throw new Refusal('bad_request', `the file is not CSV: ${(error as Error).message}`)
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** An exported record: its properties are one column; its status must be what it is anyway, else it would be lost. */
function exportedItem(cells: ReadonlyMap<string, string>) {
  const known = new Set<string>(EXPORT_COLUMNS)
  const added = [...cells].filter(([name, value]) => !known.has(name) && name !== '' && value !== '')
  const properties = jsonOf(cells.get('properties') || '{}')
  const status = cells.get('status') || undefined
  return {
    email: cells.get('email') ?? '',
    properties: isObject(properties) ? { ...properties, ...Object.fromEntries(added) } : properties,
    ...(status === undefined ? {} : { status }),
  }
}

/** A record as an item of a bulk upsert: every other column that is not empty is a property. */
export function itemOf(header: readonly string[], { cells }: CsvRecord) {
  const pairs = header.map((name, at) => [name, cells[at] ?? ''] as const)
  if (isExport(header)) return exportedItem(new Map(pairs))
  const properties = pairs.filter(([name, value]) => name !== 'email' && name !== '' && value !== '')
  const email = pairs.find(([name]) => name === 'email')?.[1] ?? ''
  return header.length > 1 ? { email, properties: Object.fromEntries(properties) } : { email }
}
