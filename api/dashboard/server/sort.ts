/** Sorts tables by a column. Only for lists that are shown whole, because others are paged by an index. */
import type { Cell } from '../components/cell.ts'
import type { Column, SectionOf } from '../components/section.ts'
import { buildTable, type RowCells, type RowOptions } from './builders.ts'
import { addressWith } from './list.ts'
import type { PageRequest } from './page.ts'

type Table = SectionOf<'table'>

const MAX_SORTED = 1_000

/** Returns what a cell is sorted by. Null if it has no value. */
function sortValue({ text, iso, number }: Cell): string | number | null {
  if (iso !== undefined) return Date.parse(iso)
  if (['', '–', 'never', 'no open session'].includes(text)) return null
  return number ? Number(text.replace(/[^\d.]/g, '')) : text
}

/** Compares values. Cells without one are last in both directions. */
function compareCells(one: Cell | undefined, other: Cell | undefined, isDown: boolean): number {
  const [a, b] = [one && sortValue(one), other && sortValue(other)]
  if (a == null || b == null) return Number(a == null) - Number(b == null)
  const order =
    typeof a === 'number' && typeof b === 'number'
      ? a - b
      : String(a).localeCompare(String(b), 'en', { numeric: true })
  return isDown ? -order : order
}

/** The labels of renamed columns, by their former ones in old links. */
type Former = Readonly<Record<string, string>>

/** Makes each heading of a table a link that sorts it, and sorts it as the address or `initial` says. */
export function sortable(request: PageRequest, table: Table, initial = '', former: Former = {}): Table {
  const { columns, rows } = table
  if (rows.length < 2 || rows.length > MAX_SORTED) return table
  const asked = request.query.get('sort') ?? initial
  const isDown = asked.startsWith('-')
  const named = isDown ? asked.slice(1) : asked
  const label = Object.hasOwn(former, named) ? former[named] : named
  const at = columns.findIndex((column) => column.label !== '' && column.label === label)
  const linked = columns.map((column, index): Column => {
    const isPlain = rows.every(({ cells: { [index]: cell } }) => !cell?.button && !cell?.copy && !cell?.frame)
    if (column.label === '' || !isPlain) return column
    const isSorted = index === at
    return {
      ...column,
      href: addressWith(request, { sort: isSorted && !isDown ? `-${column.label}` : column.label }),
      sorted: isSorted ? (isDown ? 'descending' : 'ascending') : undefined,
    }
  })
  if (at === -1) return { ...table, columns: linked }
  const sorted = rows.toSorted((one, other) => compareCells(one.cells[at], other.cells[at], isDown))
  return { ...table, columns: linked, rows: sorted }
}

/** Builds a table that its headings sort. */
export const sortableTable = <R, L extends string>(
  request: PageRequest,
  rows: readonly R[],
  shown: RowCells<R, L>,
  { sort, former, ...options }: RowOptions<R, L> & { sort?: NoInfer<L>; former?: Former },
) => sortable(request, buildTable(rows, shown, options), sort, former)
