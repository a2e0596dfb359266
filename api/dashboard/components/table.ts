/**
 * Tables and cells made ready for their views: which columns take the room that is left, what a cut value's tip says,
 * what a button's name adds, and where a long word may break. Pure.
 */
import type { Cell } from './cell.ts'
import type { Column, Section } from './section.ts'

type Table = Extract<Section, { kind: 'table' }>

/** A value longer than this may be cut in a row. */
const LONG_CELL_CHARACTERS = 20
/** The same where there are more columns than a row has room for. */
const LONG_AMONG_MANY = 8
const MANY_COLUMNS = 6

/** Long words in parts: an address breaks after its @ and its dots, an id after its dashes. */
export function withBreaks(words: string): string[] {
  return words.split(/(?<=[@._/-])(?=[^@._/\s-])/)
}

/** A cell by itself. @param of what its button is about. */
export const cellReady = (cell: Cell, of?: string) => {
  const { short: _, ...whole } = cell
  const parts =
    whole.text.length > LONG_CELL_CHARACTERS && whole.tone === undefined ? withBreaks(whole.text) : null
  return { ...whole, of, parts, detailed: withBreaks(whole.detail ?? '') }
}

/** What a row is about: its first words, else what it begins with. */
const subjectOf = (cells: readonly Cell[]): string =>
  cells.find(({ iso, button, tone, number, text }) => !(iso || button || tone || number) && text !== '–')
    ?.text ??
  cells[0]?.text ??
  ''

const isBlank = ({ text, bar, button }: Cell): boolean => text === '' && !bar && !button

const isShort = ({ iso, tone, button, bar }: Cell): boolean => Boolean(iso || tone || button || bar)

/** Whether a column's values are words, and some are longer than this. */
const isLong = (rows: Table['rows'], { number, wrap }: Column, index: number, long: number): boolean =>
  !number &&
  !wrap &&
  rows.some(({ cells }) => {
    const cell = cells[index]
    return (
      cell !== undefined &&
      !isShort(cell) &&
      !cell.copy &&
      cell.text.length + (cell.detail?.length ?? 0) > long
    )
  })

/** The place of the cell that the row is about: the first that leads somewhere, else the first of words. */
function mainOf(cells: readonly Cell[]): number {
  const linked = cells.findIndex(({ href, iso, number }) => href !== undefined && !iso && !number)
  return linked === -1 ? cells.findIndex((cell) => !isShort(cell) && !cell.number) : linked
}

type CellPlace = { wide: boolean; clear: boolean; main: boolean; times: number }

/**
 * @param wide whether its column takes the room that is left. @param clear whether its values say what they are.
 * @param main whether the cell is what the row is about. @param times how many of them the row has.
 */
function lookOf(cell: Cell, { wrap }: Column, { wide, clear, main, times }: CellPlace): string {
  const isClear = isShort(cell) || (cell.href !== undefined && !cell.number) || clear
  const isSelf = isClear && !(cell.iso && times > 1)
  const looks = [
    cell.number && 'number',
    main && 'main',
    wrap && 'wrap',
    wide && 'wide',
    isSelf && 'self',
    (cell.text === '–' || isBlank(cell)) && 'none',
  ]
  return looks.filter(Boolean).join(' ')
}

/** From this many columns on, a table of numbers is wider than a tablet. */
const NUMBERS_WIDER_THAN_TABLETS = 5

/** A table with what its view needs. On a narrow screen a row reads as a card, unless few numbers follow its name. */
export function tableReady(section: Table) {
  const { columns, rows } = section
  const isExplained = rows.some(({ cells }) => cells.some(({ number, detail }) => number && detail))
  const cards =
    isExplained ||
    columns.length >= NUMBERS_WIDER_THAN_TABLETS ||
    columns.slice(1).some(({ number }) => !number)
  const long = columns.length > MANY_COLUMNS ? LONG_AMONG_MANY : LONG_CELL_CHARACTERS
  const places = columns.map((column, index) => ({
    wide: isLong(rows, column, index, long),
    clear: isLong(rows, column, index, LONG_CELL_CHARACTERS),
  }))
  const shown = rows.map(({ key, cells }) => {
    const of = subjectOf(cells)
    const main = mainOf(cells)
    const times = cells.filter(({ iso }) => iso).length
    return {
      key,
      cells: cells.map((cell, index) => {
        const column = columns[index] ?? { label: '' }
        const { wide = false, clear = false } = places[index] ?? {}
        const look = lookOf(cell, column, { wide, clear, main: index === main, times })
        const words = cell.tip ?? [cell.text, cell.detail ?? ''].filter((part) => part !== '').join(' · ')
        const isCut = !isShort(cell) && (cell.tip !== undefined || (!column.wrap && words.length > long))
        return {
          ...cell,
          ordinary: cell.tone === 'good' || cell.tone === 'plain',
          of: cell.copy && of ? `${column.label} of ${of}` : of,
          look,
          words: !isShort(cell) && !cell.number,
          parts: column.wrap ? withBreaks(cell.text) : undefined,
          detailed: withBreaks(cell.detail ?? ''),
          label: cards && !look.includes('self') && column.label,
          whole: isCut && words,
        }
      }),
    }
  })
  return { ...section, rows: shown, cards }
}
