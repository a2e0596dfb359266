/**
 * Reads CSV files of contacts, as spreadsheets and other services save them and as we export them.
 * Promises: a file is read in slices of whole records, as short as they can be, and each says where the next begins;
 * nothing in it is dropped silently; our own files come back as they were, without the columns and quotes that we had
 * added. What no file of contacts looks like (hundreds of columns, a record of megabytes, mostly an open quote) is
 * refused before it costs anything.
 */

import { type Parser, parse } from 'csv-parse'
import { RequestError } from '../../errors.ts'
import { fill } from '../../fill.ts'
import { unguardFormulas } from '../../validation/formulas.ts'
import { TEXTS } from '../texts.ts'

/** `row`: where a record stands in the file, as spreadsheets count: empty lines count, line breaks in cells do not. */
export type CsvRecord = { row: number; cells: string[] }
export type CsvTable = { header: string[]; records: CsvRecord[] }

/** How many bytes are parsed at once; more where a single record is longer. */
const SLICE_BYTES = 128 * 1024
/** What a record may take, in bytes: more than all properties of a contact. */
const LONGEST_RECORD = 1024 * 1024
/** A contact has at most 100 properties; other services export more columns than anybody needs. */
const MAX_COLUMNS = 200
/** Cells of a record, empty ones too: as many as a spreadsheet has columns. The parser takes long for each of them. */
const MAX_CELLS = 16_384
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

/** More than that line takes. */
const SEPARATOR_LINE_BYTES = 32

/** Excel's first line, such as `sep=;`: what separates cells. @returns it with the line's length; null without one. */
function separatorLine(bytes: Buffer): { separator: string; length: number } | null {
  const [line, separator] =
    /^(?:\u{feff})?"?sep=(.)"?(?:\r\n|\n|\r)/iu.exec(bytes.subarray(0, SEPARATOR_LINE_BYTES).toString()) ?? []
  return line === undefined || separator === undefined ? null : { separator, length: Buffer.byteLength(line) }
}

type Row = { info: { bytes: number }; record: string[] }

const breaksIn = (text: string): number => text.match(/\r\n|\r|\n/g)?.length ?? 0

/** How many lines these bytes are, with or without a break after the last one. */
function linesOf(bytes: Buffer): number {
  const text = bytes.toString('latin1')
  return /[\r\n]$/.test(text) ? breaksIn(text) : breaksIn(text) + 1
}

/** What was read: up to which byte and line, and how many line breaks of that stand in cells. */
type Read = { rows: CsvRecord[]; bytes: number; lines: number; breaks: number }

/** Takes what the parser has ready. Lines are counted here: it counts two for a break of two characters in a cell. */
function taken(parser: Parser, bytes: Buffer, read: Read): void {
  for (let row = parser.read() as Row | null; row !== null; row = parser.read() as Row | null) {
    const { info, record } = row
    read.lines += linesOf(bytes.subarray(read.bytes, info.bytes))
    read.bytes = info.bytes
    read.breaks += record.reduce((sum, cell) => sum + breaksIn(cell), 0)
    read.rows.push({ row: read.lines - read.breaks, cells: record.map((cell) => cell.trim()) })
  }
}

const [QUOTE, LINE_FEED, CARRIAGE_RETURN] = [0x22, 0x0a, 0x0d]

/** Names a record by the line before it. */
const recordAfter = (line: number): string =>
  line === 0 ? TEXTS.firstLine : fill(TEXTS.recordAfterLine, { line })

/**
 * Walks through bytes without parsing them. @param line of the last one before these bytes. @returns how many records
 * end in them, lines that are not empty, outside of quotes; and whether one is begun behind these.
 * @throws RequestError bad_request for a record of too many cells, where it is known what parts them.
 */
function scan(bytes: Buffer, separator = '', line = 0) {
  const between = separator.charCodeAt(0)
  let [ended, cells, isQuoted, lines, begun, isEmpty] = [0, 1, false, line, line, true]
  // By index: the buffer's iterator takes five times as long.
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at]
    if (byte === LINE_FEED || byte === CARRIAGE_RETURN) {
      if (byte === LINE_FEED || bytes[at + 1] !== LINE_FEED) lines += 1
      if (isQuoted) continue
      if (!isEmpty) ended += 1
      cells = 1
      begun = lines
      isEmpty = true
      continue
    }
    isEmpty = false
    if (byte === QUOTE) isQuoted = !isQuoted
    else if (byte === between && !isQuoted) {
      cells += 1
      if (cells > MAX_CELLS)
        throw new RequestError(
          'bad_request',
          fill(TEXTS.tooManyCells, { record: recordAfter(begun), most: MAX_CELLS.toLocaleString('en-US') }),
        )
    }
  }
  return { ended, isOpen: !isEmpty }
}

/** How many records a file has, its first line too. */
export function countRecords(bytes: Buffer): number {
  const { ended, isOpen } = scan(bytes.subarray(separatorLine(bytes)?.length ?? 0))
  return isOpen ? ended + 1 : ended
}

type Parsing = { separator: string; isFirst: boolean; isLast: boolean; most: number }

/** The whole records in these bytes, and what was read of them. */
async function rowsOf(bytes: Buffer, { separator, isFirst, isLast, most }: Parsing) {
  const read: Read = { rows: [], bytes: 0, lines: 0, breaks: 0 }
  const parser = parse({
    bom: isFirst,
    delimiter: separator,
    info: true,
    record_delimiter: ['\r\n', '\n', '\r'],
    relax_column_count: true,
    skip_empty_lines: true,
    to: most,
  })
  await new Promise<void>((resolve, reject) => {
    parser.on('readable', () => taken(parser, bytes, read))
    parser.once('error', reject)
    if (isLast) parser.once('end', resolve).end(bytes)
    else parser.write(bytes, (error) => (error ? reject(error) : resolve()))
  })
  taken(parser, bytes, read)
  return read
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
    records: records.map(({ row, cells }) => ({
      row,
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

/** Which line of a slice the parser means by its number: within quotes it counts breaks of two characters twice. */
function lineIn(bytes: Buffer, number: number): number {
  let [parsed, lines, isQuoted] = [1, 1, false]
  for (let at = 0; parsed < number && at < bytes.length; at += 1) {
    const byte = bytes[at]
    if (byte === QUOTE) isQuoted = !isQuoted
    if (byte !== LINE_FEED && byte !== CARRIAGE_RETURN) continue
    const isSecond = byte === LINE_FEED && bytes[at - 1] === CARRIAGE_RETURN
    if (isQuoted || !isSecond) parsed += 1
    if (!isSecond) lines += 1
  }
  return lines
}

const notCsv = (error: unknown, bytes: Buffer, line: number): RequestError => {
  const { message, lines = 0 } = error as Error & { lines?: number }
  // The parser counts from the slice's own beginning.
  const placed = message.replace(/at line \d+/, `at line ${line + lineIn(bytes, lines)}`)
  return new RequestError('bad_request', fill(TEXTS.notCsv, { reason: placed }))
}

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
  const first = place === null ? separatorLine(await readBytes(0, SEPARATOR_LINE_BYTES)) : null
  const { at, line, breaks } = place ?? { at: first?.length ?? 0, line: first ? 1 : 0, breaks: 0 }
  let separator = place?.separator ?? first?.separator
  for (let length = SLICE_BYTES; ; length *= 2) {
    const bytes = await readBytes(at, length)
    const isLast = bytes.length < length
    separator ??= separatorOf(bytes.toString())
    // An open quote, or lines without words, would be parsed once more with each slice that is longer.
    if (scan(bytes, separator, line).ended === 0 && !isLast) {
      checkLength(length, line)
      continue
    }
    const isFirst = place === null
    const wanted = { separator, isFirst, isLast, most: most + (isFirst ? 1 : 0) }
    const { rows, ...read } = await rowsOf(bytes, wanted).catch((error: unknown) => {
      throw notCsv(error, bytes, line)
    })
    // The first slice has a record besides its header, for people to look at.
    if (rows.length <= (isFirst ? 1 : 0) && !isLast) {
      checkLength(length, line + read.lines)
      continue
    }
    const records = rows.map(({ row, cells }) => ({ row: line - breaks + row, cells }))
    const header = place?.header ?? headerOf(records.shift())
    const far = { at: at + read.bytes, line: line + read.lines, breaks: breaks + read.breaks }
    const next = { ...far, separator, header }
    const isOver = isLast && rows.length < wanted.most
    return { table: asItWas({ header, records }), place: isOver ? null : next, separator }
  }
}
