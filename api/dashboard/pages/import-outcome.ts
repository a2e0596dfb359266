/** Shows the expected or actual result of an import. Pure. */

import type { Made, RecordRefusal } from '../../../db/audience/import/imports.sql.ts'
import type { Mapping } from '../../../db/audience/import/mapping.ts'
import { headed, number, text } from '../components/cell.ts'
import type { Section, Tile } from '../components/section.ts'
import { buildTable, type TableOptions } from '../server/builders.ts'

export const refusedTable = (
  refused: readonly (RecordRefusal & { row: number })[],
  { names }: Mapping,
  more: TableOptions,
): Section =>
  buildTable(
    refused,
    ({ row, column, value, message }) => ({
      Row: number(row),
      Column: text(column === undefined ? null : names[column] || `Column ${column + 1}`),
      Value: text(value ?? null),
      Why: text(headed(message)),
    }),
    { main: 'Value', grow: ['Value'], wrap: ['Why'], ...more },
  )

/** Builds tiles with the numbers of new, updated and repeated records. @param said the detail of each tile. */
export const madeTiles = (
  { created, updated, repeated }: Made,
  { suppress }: Mapping,
  said: { created?: string; updated?: string } = {},
): Tile[] => {
  const tile = (label: string, count: number, detail?: string): Tile => ({
    label,
    value: count.toLocaleString('en-US'),
    detail,
  })
  return [
    { ...tile(suppress ? 'Newly suppressed' : 'New contacts', created, said.created), tone: 'good' },
    tile(suppress ? 'Suppressed before' : 'Updated', updated, said.updated),
    tile('Repeated', repeated, 'only the last row of each address is used'),
  ]
}
