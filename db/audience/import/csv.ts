/**
 * Reads CSV files of contacts, as spreadsheets and other services save them and as we export them.
 * A file is read in slices of whole records, and each says where the next begins. Nothing in it is dropped silently: a
 * record with a stray quote is returned with its fault. Our own files come back as they were, without the columns and
 * quotes that we had added. A file with hundreds of columns or a record of megabytes is rejected before it costs much.
 */

import { RequestError } from '../../errors.ts'
import { fill } from '../../fill.ts'
import { unguardFormulas } from '../../validation/formulas.ts'
import { TEXTS } from '../texts.ts'
import {
  afterBreak,
  CARRIAGE_RETURN,
  cellsOf,
  countBreaks,
  LINE_FEED,
  LONGEST_QUOTED_CELL,
  type Part,
  type RecordAt,
  recordAt,
} from './records.ts'

/**
 * `row`: the record's number in a spreadsheet. Empty lines count, line breaks in cells don't. `fault`: why the record
 * is lost. Its cells are then only what can be shown of it.
 */
export type CsvRecord = { row: number; cells: string[]; fault?: string }
export type CsvTable = { header: string[]; records: CsvRecord[] }

/** How many bytes are parsed at once. A longer record needs more. */
const SLICE_BYTES = 128 * 1024
/** The longest record, in bytes: more than all properties of a contact. */
const LONGEST_RECORD = 1024 * 1024
/** A contact has at most 100 properties. Other services export more columns than that. */
const MAX_COLUMNS = 200
const SEPARATORS = [',', ';', '\t'] as const

/** The most frequent separator in the first line, outside of quotes. */
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

const BYTE_ORDER_MARK = Buffer.from('\u{feff}')
/** More than Excel's first line takes. */
const SEPARATOR_LINE_BYTES = 32

/** Excel's first line, such as `sep=;`, which names the separator. @returns null if the file has none. */
function separatorLine(bytes: Buffer): { separator: string; length: number } | null {
  const [line, separator] =
    /^(?:\u{feff})?"?sep=([\t !#-~])"?(?:\r\n|\n|\r)/iu.exec(
      bytes.subarray(0, SEPARATOR_LINE_BYTES).toString(),
    ) ?? []
  return line === undefined || separator === undefined ? null : { separator, length: Buffer.byteLength(line) }
}

/** How many bytes and lines come before the header, and the separator if the file names it. */
function beginningOf(bytes: Buffer) {
  const line = separatorLine(bytes)
  if (line) return { at: line.length, line: 1, separator: line.separator }
  return { at: bytes.indexOf(BYTE_ORDER_MARK) === 0 ? BYTE_ORDER_MARK.length : 0, line: 0 }
}

/** Names a record by the line before it. */
const recordAfter = (line: number): string =>
  line === 0 ? TEXTS.firstLine : fill(TEXTS.recordAfterLine, { line })

/** The JSON of all properties in our own export is longer than any cell of another file. */
const longestCellOf = (header: readonly string[]): number =>
  isExport(header) ? LONGEST_RECORD : LONGEST_QUOTED_CELL

/** What was read of some bytes: up to which byte and line, and how many of its line breaks are in cells. */
type Read = { at: number; line: number; breaks: number }

/** Moves `read` behind empty lines. */
function skipEmptyLines({ bytes, isLast }: Part, read: Read): void {
  while (bytes[read.at] === LINE_FEED || bytes[read.at] === CARRIAGE_RETURN) {
    const next = afterBreak({ bytes, isLast }, read.at)
    if (next === null) return
    read.at = next
    read.line += 1
  }
}

/** Moves `read` behind the next record. @returns null if there is none, or if these bytes cut it. */
function nextRecord(part: Part, read: Read, lineBefore: number): (RecordAt & { row: number }) | null {
  skipEmptyLines(part, read)
  if (read.at >= part.bytes.length) return null
  const found = recordAt(part, read.at, () => recordAfter(lineBefore + read.line))
  if (found === null) return null
  const row = read.line - read.breaks + 1
  const breaks = countBreaks(part.bytes, found.start, found.end)
  read.at = found.next
  read.line += breaks + 1
  read.breaks += breaks
  return { ...found, row }
}

const contentOf = (part: Part, { row, ...found }: RecordAt & { row: number }): CsvRecord => {
  const cells = cellsOf(part, found)
  return found.fault === null ? { row, cells } : { row, cells, fault: found.fault }
}

type Reading = { bytes: Buffer; separator: string; isLast: boolean; header: readonly string[] | null }

/** Reads at most `most` records. The first one is the header if `header` is null. @param line the one before them. */
function recordsIn({ header, ...bytes }: Reading, most: number, line: number) {
  const part = { ...bytes, longestCell: longestCellOf(header ?? []) }
  const read: Read = { at: 0, line: 0, breaks: 0 }
  const rows: CsvRecord[] = []
  while (rows.length < most) {
    const found = nextRecord(part, read, line)
    if (found === null) break
    const record = contentOf(part, found)
    if (header === null && rows.length === 0) part.longestCell = longestCellOf(record.cells)
    rows.push(record)
  }
  return { rows, ...read }
}

/** Counts a file's records without its header, up to `most`. */
export function countRecords(file: Buffer, header: readonly string[], most: number): number {
  const { at, line, separator = separatorOf(file.toString()) } = beginningOf(file)
  const part = { bytes: file.subarray(at), separator, isLast: true, longestCell: longestCellOf(header) }
  const read: Read = { at: 0, line: 0, breaks: 0 }
  let count = -1
  while (count < most && nextRecord(part, read, line) !== null) count += 1
  return Math.max(count, 0)
}

/** Columns that we put behind those of a file whose records were refused. */
export const REFUSED_COLUMNS = ['row', 'reason'] as const
/** The columns of our export; properties are JSON in the last one. */
export const EXPORT_COLUMNS = ['email', 'status', 'topics', 'added', 'changed', 'id', 'properties'] as const

export const SUPPRESSION_COLUMNS = ['email', 'status', 'cause', 'since', 'words'] as const

const hasAll = (header: readonly string[], names: readonly string[]): boolean =>
  names.every((name) => header.includes(name))

/** Whether a file is our own export of contacts. */
export const isExport = (header: readonly string[]): boolean => hasAll(header, EXPORT_COLUMNS)

/** A table without what we had added to it ourselves. */
function asItWas({ header, records }: CsvTable): CsvTable {
  const refused = REFUSED_COLUMNS.every((name, at) => header.at(at - REFUSED_COLUMNS.length) === name)
  if (!refused && !isExport(header) && !hasAll(header, SUPPRESSION_COLUMNS)) return { header, records }
  const width = refused ? header.length - REFUSED_COLUMNS.length : header.length
  return {
    header: header.slice(0, width).map(unguardFormulas),
    records: records.map(({ cells, ...record }) => ({
      ...record,
      cells: refused
        ? [...cells.slice(0, width), ...cells.slice(header.length)].map(unguardFormulas)
        : cells.map(unguardFormulas),
    })),
  }
}

/**
 * Where reading goes on: the byte and the line that the next record begins after, how many line breaks before it stand
 * in cells, and what the first line has said.
 */
export type CsvPlace = { at: number; line: number; breaks: number; separator: string; header: string[] }

/** Reads bytes of the file; fewer than asked for at its end. */
export type ReadBytes = (at: number, length: number) => Promise<Buffer>

const headerOf = (row: CsvRecord | undefined): string[] => {
  const header = [...(row?.cells ?? [])]
  while (header.at(-1) === '') header.pop()
  if (header.length > MAX_COLUMNS)
    throw new RequestError(
      'bad_request',
      fill(TEXTS.tooManyColumnsOfFile, { count: header.length, most: MAX_COLUMNS }),
    )
  return header
}

/** @throws RequestError bad_request for a record that does not end. @param line of the one before it. */
function checkLength(length: number, line: number): void {
  if (length < LONGEST_RECORD) return
  throw new RequestError('bad_request', fill(TEXTS.recordTooLong, { record: recordAfter(line) }))
}

/**
 * Reads the next records of a CSV file, at most `most`. @param place null: from the beginning.
 * @returns them under the file's header, and what separates its cells; `place` null at the end of the file.
 * @throws RequestError bad_request saying where it breaks.
 */
export async function readSlice(
  readBytes: ReadBytes,
  place: CsvPlace | null,
  most = LONGEST_RECORD,
): Promise<{ table: CsvTable; place: CsvPlace | null; separator: string }> {
  const first = place === null ? beginningOf(await readBytes(0, SEPARATOR_LINE_BYTES)) : null
  const { at, line, breaks } = place ?? { at: 0, line: 0, breaks: 0, ...first }
  let separator = place?.separator ?? first?.separator
  for (let length = SLICE_BYTES; ; length *= 2) {
    const bytes = await readBytes(at, length)
    const isLast = bytes.length < length
    separator ??= separatorOf(bytes.toString())
    const known = place?.header ?? null
    const wanted = known === null ? most + 1 : most
    const { rows, ...read } = recordsIn({ bytes, separator, isLast, header: known }, wanted, line)
    // The first slice has a record besides its header, to show it on the page.
    if (rows.length <= (known === null ? 1 : 0) && !isLast) {
      checkLength(length, line + read.line)
      continue
    }
    const records = rows.map((record) => ({ ...record, row: line - breaks + record.row }))
    const header = known ?? headerOf(records.shift())
    const next = { at: at + read.at, line: line + read.line, breaks: breaks + read.breaks, separator, header }
    const isOver = isLast && rows.length < wanted
    return { table: asItWas({ header, records }), place: isOver ? null : next, separator }
  }
}
