/**
 * Reads CSV files of contacts in slices of complete records. Nothing is dropped silently: a record with a stray quote
 * is returned with its fault. Columns and quotes that our own exports added are removed. Files with hundreds of
 * columns, or with a record of megabytes, are rejected before they use much memory.
 */

import { requestError } from '../../errors.ts'
import { fill } from '../../fill.ts'
import { unguardFormulas } from '../../validation/formulas.ts'
import { TEXTS } from '../texts.ts'
import {
  afterBreak,
  CARRIAGE_RETURN,
  countBreaks,
  LINE_FEED,
  LONGEST_QUOTED_CELL,
  type Part,
  type RecordAt,
  readCells,
  recordAt,
} from './records.ts'

/**
 * `row` is the number in a spreadsheet, which counts empty lines but not line breaks in cells. `fault` is why the
 * record can't be imported. Its cells are then only for display.
 */
export type CsvRecord = { row: number; cells: string[]; fault?: string }
export type CsvTable = { header: string[]; records: CsvRecord[] }

/** Bytes per parse. A longer record needs more. */
const SLICE_BYTES = 128 * 1024
/** The longest record in bytes. All properties of a contact are shorter. */
const LONGEST_RECORD = 1024 * 1024
/** A contact has at most 100 properties, but other services export more columns. */
const MAX_COLUMNS = 200
const SEPARATORS = [',', ';', '\t'] as const

/** Returns the most frequent separator in the first line, outside of quotes. */
function findSeparator(source: string): string {
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
const SEPARATOR_LINE_BYTES = 32

/** Parses Excel's first line, such as `sep=;`, which names the separator. @returns null for any other line. */
function separatorLine(bytes: Buffer): { separator: string; length: number } | null {
  const [line, separator] =
    /^(?:\u{feff})?"?sep=([\t !#-~])"?(?:\r\n|\n|\r)/iu.exec(
      bytes.subarray(0, SEPARATOR_LINE_BYTES).toString(),
    ) ?? []
  return line === undefined || separator === undefined ? null : { separator, length: Buffer.byteLength(line) }
}

/** Returns how many bytes and lines precede the header, and the separator if the file names it. */
function readBeginning(bytes: Buffer) {
  const line = separatorLine(bytes)
  if (line) return { at: line.length, line: 1, separator: line.separator }
  return { at: bytes.indexOf(BYTE_ORDER_MARK) === 0 ? BYTE_ORDER_MARK.length : 0, line: 0 }
}

/** Describes a record by the line before it. */
const recordAfter = (line: number): string =>
  line === 0 ? TEXTS.firstLine : fill(TEXTS.recordAfterLine, { line })

/** The JSON of all properties in our own export is longer than any cell of another file. */
const limitCells = (header: readonly string[]): number =>
  isExport(header) ? LONGEST_RECORD : LONGEST_QUOTED_CELL

/** The position of the reader in bytes and lines, and the number of line breaks in cells so far. */
type Read = { at: number; line: number; breaks: number }

function skipEmptyLines({ bytes, isLast }: Part, read: Read): void {
  while (bytes[read.at] === LINE_FEED || bytes[read.at] === CARRIAGE_RETURN) {
    const next = afterBreak({ bytes, isLast }, read.at)
    if (next === null) return
    read.at = next
    read.line += 1
  }
}

/** Moves `read` past the next record. @returns null at the end, or if the record may continue after these bytes. */
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
  const cells = readCells(part, found)
  return found.fault === null ? { row, cells } : { row, cells, fault: found.fault }
}

type Reading = { bytes: Buffer; separator: string; isLast: boolean; header: readonly string[] | null }

/** Reads up to `most` records. Without `header`, the first one is the header. @param line the line before them. */
function recordsIn({ header, ...bytes }: Reading, most: number, line: number) {
  const part = { ...bytes, longestCell: limitCells(header ?? []) }
  const read: Read = { at: 0, line: 0, breaks: 0 }
  const rows: CsvRecord[] = []
  while (rows.length < most) {
    const found = nextRecord(part, read, line)
    if (found === null) break
    const record = contentOf(part, found)
    if (header === null && rows.length === 0) part.longestCell = limitCells(record.cells)
    rows.push(record)
  }
  return { rows, ...read }
}

/** Counts a file's records without its header, up to `most`. */
export function countRecords(file: Buffer, header: readonly string[], most: number): number {
  const { at, line, separator = findSeparator(file.toString()) } = readBeginning(file)
  const part = { bytes: file.subarray(at), separator, isLast: true, longestCell: limitCells(header) }
  const read: Read = { at: 0, line: 0, breaks: 0 }
  let count = -1
  while (count < most && nextRecord(part, read, line) !== null) count += 1
  return Math.max(count, 0)
}

/** Columns that our file of rejected records has at the end. */
export const REFUSED_COLUMNS = ['row', 'reason'] as const
/** The columns of our export. The last one contains the properties as JSON. */
export const EXPORT_COLUMNS = ['email', 'status', 'topics', 'added', 'changed', 'id', 'properties'] as const

export const SUPPRESSION_COLUMNS = ['email', 'status', 'cause', 'since', 'words'] as const

const hasAll = (header: readonly string[], names: readonly string[]): boolean =>
  names.every((name) => header.includes(name))

export const isExport = (header: readonly string[]): boolean => hasAll(header, EXPORT_COLUMNS)

/** Removes what our own files add to a table. */
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
 * The position to continue from: the byte and line that the next record starts after, the line breaks in cells before
 * it, and the contents of the first line.
 */
export type CsvPlace = { at: number; line: number; breaks: number; separator: string; header: string[] }

/** Reads bytes of the file, fewer at its end. */
export type ReadBytes = (at: number, length: number) => Promise<Buffer>

const headerOf = (row: CsvRecord | undefined): string[] => {
  const header = [...(row?.cells ?? [])]
  while (header.at(-1) === '') header.pop()
  if (header.length > MAX_COLUMNS)
    throw requestError('bad_request', TEXTS.tooManyColumnsOfFile, { count: header.length, most: MAX_COLUMNS })
  return header
}

/** @throws RequestError bad_request for a record that doesn't end. @param line the line before it. */
function checkLength(length: number, line: number): void {
  if (length < LONGEST_RECORD) return
  throw requestError('bad_request', TEXTS.recordTooLong, { record: recordAfter(line) })
}

/**
 * @param place null to start at the first byte.
 * @returns up to `most` records, the separator, and the next `place`, which is null at the end of the file.
 * @throws RequestError bad_request with the position of the error.
 */
export async function readSlice(readBytes: ReadBytes, place: CsvPlace | null, most = LONGEST_RECORD) {
  const first = place === null ? readBeginning(await readBytes(0, SEPARATOR_LINE_BYTES)) : null
  const { at, line, breaks } = place ?? { at: 0, line: 0, breaks: 0, ...first }
  let separator = place?.separator ?? first?.separator
  for (let length = SLICE_BYTES; ; length *= 2) {
    const bytes = await readBytes(at, length)
    const isLast = bytes.length < length
    separator ??= findSeparator(bytes.toString())
    const known = place?.header ?? null
    const wanted = known === null ? most + 1 : most
    const { rows, ...read } = recordsIn({ bytes, separator, isLast, header: known }, wanted, line)
    // The first slice has at least one record in addition to the header, for the preview.
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
