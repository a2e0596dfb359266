/** Prepares tables and cells for views: CSS classes, tooltips, accessible names of buttons, and line breaks. Pure. */
import type { Cell } from './cell.ts'
import type { Column, SectionOf } from './section.ts'

/** A longer value can be cut in a row. */
const LONG_CELL_CHARACTERS = 20
/** The same in a table with MANY_COLUMNS columns or more. */
const LONG_AMONG_MANY = 8
const MANY_COLUMNS = 6

/** Splits a text where a line can break: after the dots of an address or the dashes of an ID, but not in a decimal. */
export function withBreaks(words: string): string[] {
  return words.split(/(?<=[@._/-])(?<!\d\.(?=\d))(?=[^@._/\s-])/)
}

/** Prepares a cell outside a table. @param of the object of its button. */
export const cellReady = (cell: Cell, of?: string) => {
  const { short: _, ...whole } = cell
  const parts =
    whole.text.length > LONG_CELL_CHARACTERS && whole.tone === undefined ? withBreaks(whole.text) : null
  return { ...whole, of, parts, detailed: withBreaks(whole.detail ?? '') }
}

const isOrdinary = ({ tone }: Cell): boolean => tone === 'good' || tone === 'plain'

const isBlank = ({ text, bar, button }: Cell): boolean => text === '' && !bar && !button

const isShort = ({ iso, tone, button, bar, frame }: Cell): boolean =>
  Boolean(iso || tone || button || bar || frame)

/** Returns the index of the column whose times need no label in a card: the only one with times, at either end. */
function findClearTimes({ columns, rows }: SectionOf<'table'>): number | undefined {
  const [first, ...others] = columns.flatMap((_, index) =>
    rows.some(({ cells }) => cells[index]?.iso) ? [index] : [],
  )
  const last = columns.findLastIndex(({ label }) => label !== '')
  return others.length === 0 && (first === 0 || first === last) ? first : undefined
}

/** Columns that tell how the row is. A card needs no label for that. */
const STATUS_LABEL = /^(Cause|Event|Outcome|State|Status)$/

/**
 * Returns the CSS classes of a cell. A `self` cell needs no label in a card. The last line of a card has its ordinary
 * `state` at the left and its clear time at the right. Other states follow the name.
 */
function listClasses(
  cell: Cell,
  { label, main, grow, wrap }: Column,
  { isClearTime, isWide }: { isClearTime: boolean; isWide: boolean },
): string {
  const isStatus = cell.tone !== undefined && STATUS_LABEL.test(label)
  const isClear = isStatus || main || grow || cell.button || cell.bar || cell.frame
  const isLast = cell.iso !== undefined && isClearTime && !main && !grow
  const looks = [
    cell.number && 'number',
    main && 'main',
    wrap && 'wrap',
    grow && isWide && 'wide',
    (isClear || isLast) && 'self',
    isStatus && isOrdinary(cell) && !main && 'state',
    isLast && 'last',
    (cell.usual || cell.text === '–' || isBlank(cell)) && 'none',
  ]
  return looks.filter(Boolean).join(' ')
}

/** The end of a row's ID, which differs between the rows of a page. */
const KEY_CHARACTERS = 12
/** Text that may be written from right to left. */
const HAS_OTHER_LETTERS = /[^ -\u024f]/

/** With this many columns or more, a table of numbers is wider than a tablet. */
const NUMBERS_WIDER_THAN_TABLETS = 5

const wordsIn = ({ text, detail = '' }: Cell = { text: '' }): string =>
  [text, detail].filter((part) => part !== '').join(' · ')

/** Prepares a table for its view. On narrow screens each row is a card, except in small tables of numbers. */
export function tableReady(section: SectionOf<'table'>) {
  const { columns, rows } = section
  const isExplained = rows.some(({ cells }) => cells.some(({ number, detail }) => number && detail))
  const cards =
    isExplained ||
    columns.length >= NUMBERS_WIDER_THAN_TABLETS ||
    columns.slice(1).some(({ number }) => !number)
  const long = columns.length >= MANY_COLUMNS ? LONG_AMONG_MANY : LONG_CELL_CHARACTERS
  // One column is not enough, because the emails of a broadcast have the same subject.
  const picked = columns.flatMap(({ main, grow }, index) => (main || grow ? [index] : []))
  const clearTimes = findClearTimes(section)
  const isMainShort =
    columns.some(({ main, grow }) => grow && !main) &&
    rows.every(({ cells }) =>
      columns.every(({ main }, index) => !main || wordsIn(cells[index]).length <= LONG_CELL_CHARACTERS),
    )
  const shown = rows.map(({ key, cells }) => {
    const of = cells.find((_, index) => columns[index]?.main)?.text
    return {
      key: key?.slice(-KEY_CHARACTERS),
      id: key,
      of,
      selects: picked.map((index) => cells[index]?.text).join(', '),
      cells: cells.map((cell, index) => {
        const column = columns[index] ?? { label: '' }
        const isWide = !(column.main && isMainShort)
        const look = listClasses(cell, column, { isClearTime: index === clearTimes, isWide })
        const words = cell.tip ?? wordsIn(cell)
        // In a card, these values wrap. Other growing columns are cut.
        const wraps =
          column.wrap || (cell.text.length > long && (!column.grow || index === columns.length - 1))
        const isCut = !isShort(cell) && (cell.tip !== undefined || (!column.wrap && words.length > long))
        return {
          ...cell,
          ordinary: isOrdinary(cell),
          of: cell.copy && of ? `${column.label} of ${of}` : of,
          look,
          words: HAS_OTHER_LETTERS.test(cell.text),
          parts: wraps ? withBreaks(cell.text) : undefined,
          detailed: withBreaks(cell.detail ?? ''),
          label: cards && !look.includes('self') && column.label,
          whole: isCut && words,
        }
      }),
    }
  })
  return { ...section, rows: shown, cards }
}
