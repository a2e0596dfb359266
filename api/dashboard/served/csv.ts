/**
 * Lists as CSV (RFC 4180), streamed row by row.
 * Promises: a cell that a spreadsheet would read as a formula gets a quote before it, and so does one that has such
 * quotes already: imports take one off (db/audience/import/csv.ts). The file begins with a byte order
 * mark: Excel reads UTF-8 as such only then. The first rows are read before anything is answered, so that what cannot
 * be listed is a page that says so, not a file that breaks off.
 */
import { Readable } from 'node:stream'
import { type PageAnswer, raw } from './page.ts'

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

/** How many rows a file reads at a time. */
const LOT = 500

/**
 * All rows of a list, by lots, until one is short and nothing says that there are more.
 * @param read the rows that follow; `reached`: where a search was broken off. @param keyOf what the next lot follows.
 */
export async function* rowsBy<R>(
  read: (
    after: string | undefined,
    limit: number,
  ) => Promise<{ rows: readonly R[]; reached?: string | null }>,
  keyOf: (row: R) => string,
) {
  for (let after: string | undefined; ; ) {
    const { rows, reached = null } = await read(after, LOT)
    yield* rows
    const last = rows.at(-1)
    if (reached === null && rows.length < LOT) return
    after = reached ?? (last && keyOf(last))
  }
}
