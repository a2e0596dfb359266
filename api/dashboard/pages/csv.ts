/**
 * Lists as CSV (RFC 4180), streamed row by row.
 * Promises: a cell that a spreadsheet would read as a formula gets a quote before it, and so does one that has such
 * quotes already: imports take one off (db/audience/import/csv.ts). The file begins with a byte order
 * mark: Excel reads UTF-8 as such only then. The first rows are read before anything is answered, so that what cannot
 * be listed is a page that says so, not a file that breaks off.
 */
import { Readable } from 'node:stream'
import { type PageAnswer, raw } from '../served/page.ts'

/** One cell, quoted where it has to be. */
function csvCell(value: string): string {
  const tame = /^'*[=+\-@\t\r]/.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(tame) ? `"${tame.replaceAll('"', '""')}"` : tame
}

/** One line. */
const csvLine = (cells: readonly (string | null)[]): string =>
  `${cells.map((cell) => csvCell(cell ?? '')).join(',')}\r\n`

const BYTE_ORDER_MARK = '\uFEFF'

/** A file of rows as they come. @throws whatever keeps the first row from being read. */
export async function csvFile(
  name: string,
  header: readonly string[],
  rows: AsyncGenerator<readonly (string | null)[]>,
): Promise<PageAnswer> {
  const first = await rows.next()
  async function* lines() {
    yield BYTE_ORDER_MARK + csvLine(header)
    if (first.done) return
    yield csvLine(first.value)
    for await (const row of rows) yield csvLine(row)
  }
  const headers = {
    'Content-Type': 'text/csv; charset=utf-8',
    'Content-Disposition': `attachment; filename="${name}.csv"`,
  }
  return raw(headers, Readable.from(lines()))
}
