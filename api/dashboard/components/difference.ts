/**
 * What changed between two texts, line by line. Pure. Where they differ in more lines than can be compared, these are
 * shown one after the other, and it is said that nothing was compared: of lines left out, some may be in both texts.
 * Promises: a page can show it, whatever the texts are: of many lines that are alike gone, new or kept, some are left
 * out. A megabyte may be a million lines, and to draw them took 19 s of everybody's and a gigabyte.
 */

import { plural } from './cell.ts'

/** @param sign `…` before our own words, which no text's line has. */
export type DifferenceLine = { sign: '+' | '-' | ' ' | '…'; text: string }

/** Cells of the table that finds the longest common part. */
const MAX_CELLS = 4_000_000
/** Lines that are compared, and those in a row that are shown of the others. */
const MAX_LINES = 10_000
const MAX_IN_A_ROW = 2_000

const UNCOMPARED: DifferenceLine = {
  sign: '…',
  text: 'Too much differs to be compared line by line: here are the old lines, then the new ones',
}

const all = (sign: DifferenceLine['sign'], lines: readonly string[]): DifferenceLine[] =>
  lines.map((text) => ({ sign, text }))

/** Lines of one kind: the first and the last of them, where there are too many. */
function inARow(sign: DifferenceLine['sign'], lines: readonly string[]): DifferenceLine[] {
  const left = lines.length - MAX_IN_A_ROW
  if (left <= 0) return all(sign, lines)
  const [first, last] = [lines.slice(0, MAX_IN_A_ROW / 2), lines.slice(-MAX_IN_A_ROW / 2)]
  return [...all(sign, first), { sign: '…', text: plural(left, 'more line') }, ...all(sign, last)]
}

/** Both texts' lines as numbers, equal ones alike: each is compared with each, and they may be long. */
function numbered(...texts: readonly (readonly string[])[]): Uint32Array[] {
  const numbers = new Map<string, number>()
  const numberOf = (line: string): number => {
    const number = numbers.get(line) ?? numbers.size
    numbers.set(line, number)
    return number
  }
  return texts.map((lines) => Uint32Array.from(lines, numberOf))
}

/** Lengths of the longest common parts of all ends of the two texts. */
function commonLengths([
  before = new Uint32Array(),
  after = new Uint32Array(),
]: Uint32Array[]): Uint16Array[] {
  // No longer than the shorter text, which has 2,000 lines at most.
  const table = Array.from({ length: before.length + 1 }, () => new Uint16Array(after.length + 1))
  for (let i = before.length - 1; i >= 0; i--) {
    const row = table[i] as Uint16Array
    const below = table[i + 1] as Uint16Array
    for (let j = after.length - 1; j >= 0; j--)
      row[j] = before[i] === after[j] ? (below[j + 1] ?? 0) + 1 : Math.max(below[j] ?? 0, row[j + 1] ?? 0)
  }
  return table
}

/** How many lines of two texts are the same from their beginnings on, at most `most`; from their ends with `back`. */
function sameLines(before: readonly string[], after: readonly string[], most: number, back = false): number {
  const line = (of: readonly string[], at: number) => of[back ? of.length - 1 - at : at]
  let count = 0
  while (count < most && line(before, count) === line(after, count)) count++
  return count
}

/** What differs, each line as gone, new or kept. */
function changed(before: readonly string[], after: readonly string[]): DifferenceLine[] {
  const isTooMuch = before.length * after.length > MAX_CELLS || before.length + after.length > MAX_LINES
  // Where one text merely has more lines, there was nothing to compare.
  const isOneAlone = before.length === 0 || after.length === 0
  if (isTooMuch) return [...(isOneAlone ? [] : [UNCOMPARED]), ...inARow('-', before), ...inARow('+', after)]
  const table = commonLengths(numbered(before, after))
  const lines: DifferenceLine[] = []
  let i = 0
  let j = 0
  while (i < before.length && j < after.length) {
    if (before[i] === after[j]) {
      lines.push({ sign: ' ', text: before[i++] ?? '' })
      j++
    } else if ((table[i + 1]?.[j] ?? 0) >= (table[i]?.[j + 1] ?? 0)) {
      lines.push({ sign: '-', text: before[i++] ?? '' })
    } else {
      lines.push({ sign: '+', text: after[j++] ?? '' })
    }
  }
  return [...lines, ...all('-', before.slice(i)), ...all('+', after.slice(j))]
}

/** The lines of both, each as gone, new or kept. */
export function difference(one: string, other: string): DifferenceLine[] {
  const before = one.split(/\r?\n/)
  const after = other.split(/\r?\n/)
  const shorter = Math.min(before.length, after.length)
  const head = sameLines(before, after, shorter)
  const tail = sameLines(before, after, shorter - head, true)
  const middle = (lines: readonly string[]) => lines.slice(head, lines.length - tail)
  return [
    ...inARow(' ', before.slice(0, head)),
    ...changed(middle(before), middle(after)),
    ...inARow(' ', before.slice(before.length - tail)),
  ]
}
