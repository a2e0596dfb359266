/** Prepares tables and cells for views: CSS classes, tooltips, accessible names of buttons, and line breaks. Pure. */
import { type Cell, NO_ACTIVITY } from './cell.ts'
import type { Column, SectionOf } from './section.ts'

/** A longer value can be cut in a row. */
const LONG_CELL_CHARACTERS = 20
/** The same in a table with MANY_COLUMNS columns or more. */
const LONG_AMONG_MANY = 8
const MANY_COLUMNS = 6

/** A word of a sentence that may not fit on a line, alone in its group. */
const LONG_WORD = /(\S{17,})/
/** Where it can break: after the dots of an address or the dashes of an ID, but not in a decimal. */
const BREAK = /(?<=[@._/-])(?<!\d\.(?=\d))(?=[^@._/-])/

/** Splits a text where a line can break in a word. In a sentence, only a long word can break. */
export const withBreaks = (words: string): string[] =>
  (words.includes(' ') ? words.split(LONG_WORD) : ['', words])
    .flatMap((part, index) => (index % 2 === 1 ? part.split(BREAK) : part))
    .filter((part) => part !== '')

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
const STATUS_LABEL = /^(Cause|Event|Outcome|Sending|State|Status)$/
/** Growing columns whose values need no label in a card. */
const CLEAR_LABEL = /^(Last response|Message|Problem|Reason|Recipient|Response|Text|User|Why.*)$/
/** Columns whose values need no label next to a short name. */
const BESIDE_NAME = /^(Recipient|Template)$/
/** A column that can wrap next to the time of a card, without a label. Others that wrap are long. */
const ACTOR_LABEL = 'By'
/** Longer text with its label doesn't fit half of a card on a phone. */
const HALF_CHARACTERS = 22
/** The space of a Copy button, or of the dot of a status. */
const COPY_CHARACTERS = 10
const DOT_CHARACTERS = 4

/** The place of a column in a card: next to a short name, at an end of the line below, or in half of a line. */
type Place = 'next' | 'state' | 'last' | 'half' | undefined

const wordsIn = ({ text, detail = '' }: Cell = { text: '' }): string =>
  [text, detail].filter((part) => part !== '').join(' · ')

/** Returns true if the main column leaves its width to other growing ones. */
const hasShortNames = ({ columns, rows }: SectionOf<'table'>): boolean =>
  columns.some(({ main, grow }) => grow && !main) &&
  rows.every(({ cells }) =>
    columns.every(({ main }, index) => !main || wordsIn(cells[index]).length <= LONG_CELL_CHARACTERS),
  )

const isHidden = (cell: Cell): boolean => Boolean(cell.usual) || cell.text === '–' || isBlank(cell)

const countCharacters = ({ text, short, detail = '', copy, tone }: Cell): number =>
  (short ?? text).length + detail.length + (copy ? COPY_CHARACTERS : 0) + (tone ? DOT_CHARACTERS : 0)

const isWidget = ({ button, bar, frame }: Cell): boolean => Boolean(button || bar || frame)

/** Returns the place of each column in cards. It is the same in all rows of a table. */
function findPlaces(section: SectionOf<'table'>, isMainShort: boolean): Place[] {
  const { columns, rows } = section
  const times = findClearTimes(section)
  const clearTimes = columns[times ?? -1]?.main || columns[times ?? -1]?.grow ? undefined : times
  const cellsOf = columns.map((_, index) => rows.flatMap(({ cells }) => cells[index] ?? []))
  const has = (index: number, test: (cell: Cell) => boolean) => cellsOf[index]?.some(test) ?? false
  const isFree = ({ main }: Column, index: number) =>
    !main && index !== clearTimes && !has(index, isWidget) && !cellsOf[index]?.every(isHidden)
  const status = columns.findIndex(
    ({ label, main }, index) => STATUS_LABEL.test(label) && !main && has(index, ({ tone }) => !!tone),
  )
  const lead =
    status < 0 && clearTimes !== undefined
      ? columns.findIndex(
          (column, index) => (!column.wrap || column.label === ACTOR_LABEL) && isFree(column, index),
        )
      : status
  return columns.map((column, index) => {
    const { label, grow, wrap } = column
    if (index === lead) return 'state'
    if (index === clearTimes) return 'last'
    if (!isFree(column, index)) return undefined
    if (isMainShort && BESIDE_NAME.test(label)) return 'next'
    if (grow && CLEAR_LABEL.test(label)) return undefined
    const fits = (cell: Cell) => isHidden(cell) || label.length + 2 + countCharacters(cell) <= HALF_CHARACTERS
    return column.number || (!wrap && cellsOf[index]?.every(fits)) ? 'half' : undefined
  })
}

/** Returns the indexes of hidden cells that keep their place in a card, because another is next to it. */
function findGaps(cells: readonly Cell[], places: readonly Place[]): Set<number> {
  const at = (place: Place) => places.flatMap((one, index) => (one === place ? [index] : []))
  const halves = at('half').map((index, nth, all) => [index, all[nth % 2 === 0 ? nth + 1 : nth - 1]] as const)
  const pairs = [...halves, [at('state')[0] ?? -1, at('last')[0]] as const]
  const isShown = (index = -1) => {
    const cell = cells[index]
    return cell !== undefined && !isHidden(cell)
  }
  return new Set(pairs.flatMap(([index, other]) => (!isShown(index) && isShown(other) ? [index] : [])))
}

/**
 * Returns the CSS classes of a cell. A `self` cell needs no label in a card. The line below the name has the status at
 * the left and the clear time at the right.
 */
function listClasses(
  cell: Cell,
  { label, main, grow, wrap }: Column,
  { place, isGap, isWide }: { place: Place; isGap: boolean; isWide: boolean },
): string {
  const isStatus = cell.tone !== undefined && STATUS_LABEL.test(label)
  const isClear =
    isStatus ||
    main ||
    place === 'next' ||
    (label === ACTOR_LABEL && place === 'state') ||
    (grow && CLEAR_LABEL.test(label)) ||
    isWidget(cell)
  const isLast = place === 'last' && (cell.iso !== undefined || cell.tip === NO_ACTIVITY)
  const looks = [
    cell.number && 'number',
    main && 'main',
    wrap && 'wrap',
    grow && isWide && 'wide',
    (isClear || isLast) && 'self',
    place !== 'last' && place,
    isLast && 'last',
    isHidden(cell) && (isGap ? 'gap' : 'none'),
  ]
  return looks.filter(Boolean).join(' ')
}

/** The end of a row's ID, which differs between the rows of a page. */
const KEY_CHARACTERS = 12
/** Text that may be written from right to left. */
const HAS_OTHER_LETTERS = /[^ -\u024f]/

/** With this many columns or more, a table of numbers is wider than a tablet. */
const NUMBERS_WIDER_THAN_TABLETS = 5

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
  const isMainShort = hasShortNames(section)
  const places = findPlaces(section, isMainShort)
  const shown = rows.map(({ key, cells }) => {
    const gaps = findGaps(cells, places)
    const of = cells.find((_, index) => columns[index]?.main)?.text
    return {
      key: key?.slice(-KEY_CHARACTERS),
      id: key,
      of,
      selects: picked.map((index) => cells[index]?.text).join(', '),
      cells: cells.map((cell, index) => {
        const column = columns[index] ?? { label: '' }
        const isWide = !(column.main && isMainShort)
        const look = listClasses(cell, column, { place: places[index], isGap: gaps.has(index), isWide })
        const words = cell.tip ?? wordsIn(cell)
        // In a card, these values wrap. Other growing columns are cut.
        const wraps =
          column.wrap || (cell.text.length > long && (!column.grow || index === columns.length - 1))
        const isCut = !isShort(cell) && !column.wrap && words.length > long
        return {
          ...cell,
          ordinary: isOrdinary(cell),
          of: cell.copy && of ? `${column.label} of ${of}` : of,
          look,
          words: HAS_OTHER_LETTERS.test(cell.text),
          parts: wraps ? withBreaks(cell.text) : undefined,
          detailed: withBreaks(cell.detail ?? ''),
          label: cards && !look.includes('self') && column.label,
          whole: (isCut || cell.tip !== undefined) && words,
        }
      }),
    }
  })
  return { ...section, rows: shown, cards }
}
