/**
 * Finds the records of a CSV file in its bytes (RFC 4180). It is our own parser because a stray quote must only
 * affect its own record. csv-parse stops at one, or reads it as the start of a cell that swallows the next records.
 * Each byte is read a constant number of times.
 */

import { requestError } from '../../errors.ts'
import { TEXTS } from '../texts.ts'

/** Cells per record, including empty ones: the columns of a spreadsheet. */
const MAX_CELLS = 16_384
/** A quoted cell that is longer counts as not closed, in bytes. */
export const LONGEST_QUOTED_CELL = 64 * 1024

export const [LINE_FEED, CARRIAGE_RETURN] = [0x0a, 0x0d] as const
const QUOTE = 0x22

/** `isLast` is true if the file ends here. `longestCell` limits the length of quoted cells. */
export type Part = { bytes: Buffer; separator: string; isLast: boolean; longestCell: number }

/** A record's position in the bytes, without its line break. `fault` is why it can't be imported. */
export type RecordAt = {
  start: number
  end: number
  next: number
  cells: readonly (readonly [number, number])[]
  fault: string | null
}

const isBreak = (byte: number | undefined): boolean => byte === LINE_FEED || byte === CARRIAGE_RETURN

function endOfLine(bytes: Buffer, from: number): number {
  let at = from
  while (at < bytes.length && !isBreak(bytes[at])) at += 1
  return at
}

export function countBreaks(bytes: Buffer, from: number, to: number): number {
  let count = 0
  for (let at = from; at < to; at += 1)
    if (bytes[at] === LINE_FEED || (bytes[at] === CARRIAGE_RETURN && bytes[at + 1] !== LINE_FEED)) count += 1
  return count
}

type CellEnd = { end: number; fault: string | null }

/** @returns null if that depends on later bytes. */
function endOfQuoted({ bytes, separator, isLast, longestCell }: Part, start: number): CellEnd | null {
  for (let at = start + 1; at < bytes.length; at += 1) {
    if (at - start > longestCell) return { end: at, fault: TEXTS.quoteNotClosed }
    if (bytes[at] !== QUOTE) continue
    const after = bytes[at + 1]
    if (after === QUOTE) {
      at += 1
      continue
    }
    if (after === undefined && !isLast) return null
    const isClosed = after === undefined || isBreak(after) || after === separator.charCodeAt(0)
    return { end: at + 1, fault: isClosed ? null : TEXTS.strayQuote }
  }
  return isLast ? { end: bytes.length, fault: TEXTS.quoteNotClosed } : null
}

/** @returns null if that depends on later bytes. */
function endOfCell(part: Part, start: number): CellEnd | null {
  const { bytes, separator, isLast } = part
  if (bytes[start] === QUOTE) return endOfQuoted(part, start)
  const between = separator.charCodeAt(0)
  let end = start
  let fault: string | null = null
  while (end < bytes.length && bytes[end] !== between && !isBreak(bytes[end])) {
    if (bytes[end] === QUOTE) fault = TEXTS.strayQuote
    end += 1
  }
  return end < bytes.length || isLast ? { end, fault } : null
}

/** Returns where the next line starts, or null if that depends on later bytes. */
export function afterBreak({ bytes, isLast }: Pick<Part, 'bytes' | 'isLast'>, end: number): number | null {
  if (end === bytes.length) return isLast ? end : null
  if (bytes[end] === LINE_FEED) return end + 1
  if (end + 1 === bytes.length && !isLast) return null
  return bytes[end + 1] === LINE_FEED ? end + 2 : end + 1
}

/** A record with a fault ends at the line in which the faulty cell starts, so that the next line isn't lost. */
function lostRecord(part: Part, start: number, cell: number, fault: string): RecordAt | null {
  const end = endOfLine(part.bytes, cell)
  const next = afterBreak(part, end)
  return next === null ? null : { start, end, next, cells: [], fault }
}

/**
 * Finds the record that starts at `start`. @returns null if it may continue after these bytes.
 * @throws RequestError bad_request if it has too many cells. @param name describes the record in the message.
 */
export function recordAt(part: Part, start: number, name: () => string): RecordAt | null {
  const cells: [number, number][] = []
  for (let cell = start; ; ) {
    const found = endOfCell(part, cell)
    if (found === null) return null
    const { end, fault } = found
    if (fault !== null) return lostRecord(part, start, cell, fault)
    cells.push([cell, end])
    if (cells.length > MAX_CELLS)
      throw requestError('bad_request', TEXTS.tooManyCells, {
        record: name(),
        most: MAX_CELLS.toLocaleString('en-US'),
      })
    if (part.bytes[end] === part.separator.charCodeAt(0)) {
      cell = end + 1
      continue
    }
    const next = afterBreak(part, end)
    return next === null ? null : { start, end, next, cells, fault: null }
  }
}

function readText(bytes: Buffer, [from, to]: readonly [number, number]): string {
  const isQuoted = bytes[from] === QUOTE
  const text = isQuoted ? bytes.toString('utf8', from + 1, to - 1) : bytes.toString('utf8', from, to)
  return (isQuoted ? text.replaceAll('""', '"') : text).trim()
}

/** Returns a record's cells. Those of a record with a fault are split at each separator. */
export function readCells({ bytes, separator }: Part, { start, end, cells, fault }: RecordAt): string[] {
  if (fault === null) return cells.map((cell) => readText(bytes, cell))
  return bytes.toString('utf8', start, end).split(separator, MAX_CELLS)
}
