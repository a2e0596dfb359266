/**
 * Lists as CSV (RFC 4180), streamed row by row.
 * Promises: a cell that a spreadsheet would read as a formula gets a quote before it.
 */
import { Readable } from 'node:stream'
import { type PageAnswer, raw } from './page.ts'

/** One cell, quoted where it has to be. */
function csvCell(value: string): string {
  const tame = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(tame) ? `"${tame.replaceAll('"', '""')}"` : tame
}

/** One line. */
const csvLine = (cells: readonly (string | null)[]): string =>
  `${cells.map((cell) => csvCell(cell ?? '')).join(',')}\r\n`

/** A file of rows as they come. */
export function csvFile(
  name: string,
  header: readonly string[],
  rows: AsyncIterable<readonly (string | null)[]>,
): PageAnswer {
  async function* lines() {
    yield csvLine(header)
    for await (const row of rows) yield csvLine(row)
  }
  const headers = {
    'Content-Type': 'text/csv; charset=utf-8',
    'Content-Disposition': `attachment; filename="${name}.csv"`,
  }
  return raw(headers, Readable.from(lines()))
}
