/** What an import has made and refused, or would: in the same words before it is started and after. Pure. */
import type { Made, RecordRefusal } from '../../../db/audience/import/import.ts'
import type { Mapping } from '../../../db/audience/import/mapping.ts'
import { headed, number, text } from '../drawn/cell.ts'
import type { Section, Tile } from '../drawn/section.ts'

/** Records that were refused, or would be: where each stands in its file, and why. */
export const refusedRows = (
  refused: readonly (RecordRefusal & { row: number })[],
  { names }: Mapping,
): Pick<Extract<Section, { kind: 'table' }>, 'columns' | 'rows'> => ({
  columns: [
    { label: 'Row', number: true },
    { label: 'Column' },
    { label: 'Value' },
    { label: 'Why', wrap: true },
  ],
  rows: refused.map(({ row, column, value, message }) => ({
    cells: [
      number(row),
      text(column === undefined ? null : names[column] || `Column ${column + 1}`),
      text(value ?? null),
      text(headed(message)),
    ],
  })),
})

/** What an import has made, or would make; `said` of each. */
export const madeTiles = (
  { created, updated, repeated }: Made,
  { suppress }: Mapping,
  said: { created?: string; updated?: string } = {},
): Tile[] => {
  const tile = (label: string, count: number, detail?: string): Tile => ({
    label,
    value: count.toLocaleString('en-US'),
    ...(detail ? { detail } : {}),
  })
  return [
    { ...tile('New contacts', created, said.created), tone: 'good' },
    tile(suppress ? 'Existed already' : 'Updated', updated, said.updated),
    tile('Repeated in the file', repeated, 'the last of each address counts'),
  ]
}
