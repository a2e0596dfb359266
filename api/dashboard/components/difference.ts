/**
 * Compares two texts by line and, within changed lines, by word, with npm's `diff`. Pure. If too many lines
 * differ, it shows a notice, the old lines and then the new ones. The output is bounded: long runs of
 * removed, added or unchanged lines are cut in the middle.
 */
import { diffArrays, diffWordsWithSpace } from 'diff'
import { plural } from '../../../db/plural.ts'

/** The sign `…` marks our own text. `parts` splits the text into changed and unchanged parts. */
export type DifferenceLine = { sign: '+' | '-' | ' ' | '…'; text: string; parts?: TextPart[] }
type TextPart = { text: string; changed: boolean }

/** Maximum number of edits, by line or by word. The time grows quadratically. */
const MAX_EDITS = 500
/** Maximum length of a run of removed or added lines. About as many unchanged lines are shown in total. */
const MAX_IN_A_ROW = 2_000
/** Maximum length of a block of changed lines that is compared by word, in characters. */
const MAX_WORDS_LENGTH = 100_000

const UNCOMPARED: DifferenceLine = {
  sign: '…',
  text: 'Too many differences to compare line by line. The old lines are followed by the new ones.',
}

/** Returns lines, or the first and last of them if there are too many. */
function inARow(lines: readonly DifferenceLine[], most = MAX_IN_A_ROW): DifferenceLine[] {
  const left = lines.length - most
  if (left <= 0) return [...lines]
  const [first, last] = [lines.slice(0, most / 2), lines.slice(-most / 2)]
  return [...first, { sign: '…', text: plural(left, 'more line') }, ...last]
}

const all = (sign: DifferenceLine['sign'], lines: readonly string[]): DifferenceLine[] =>
  lines.map((text) => ({ sign, text }))

/** Counts equal lines at the start of two texts, or at the end with `back`, up to `most`. */
function sameLines(before: readonly string[], after: readonly string[], most: number, back = false): number {
  const line = (of: readonly string[], at: number) => of[back ? of.length - 1 - at : at]
  let count = 0
  while (count < most && line(before, count) === line(after, count)) count++
  return count
}

function byLines(parts: readonly TextPart[]): TextPart[][] {
  const lines: TextPart[][] = [[]]
  for (const { text, changed } of parts) {
    const [first = '', ...others] = text.split('\n')
    lines.at(-1)?.push({ text: first, changed })
    lines.push(...others.map((other) => [{ text: other, changed }]))
  }
  return lines.map((line) => line.filter(({ text }) => text !== ''))
}

/** Returns the lines of a replaced block. Marks changes within lines if the two versions share any text. */
function replaced(before: readonly string[], after: readonly string[]): DifferenceLine[] {
  const [one, other] = [before.join('\n'), after.join('\n')]
  const isShort = one.length + other.length <= MAX_WORDS_LENGTH
  const words = isShort ? diffWordsWithSpace(one, other, { maxEditLength: MAX_EDITS }) : undefined
  const isAlike = words?.some(({ added, removed, value }) => !added && !removed && /\w/.test(value))
  if (!words || !isAlike) return [...inARow(all('-', before)), ...inARow(all('+', after))]
  const marked = (sign: '-' | '+', gone: 'added' | 'removed') => {
    const kept = words.filter((word) => !word[gone])
    const lines = byLines(
      kept.map(({ value, added, removed }) => ({ text: value, changed: added || removed })),
    )
    return lines.map((parts): DifferenceLine => {
      return { sign, text: parts.map(({ text }) => text).join(''), parts }
    })
  }
  return [...inARow(marked('-', 'added')), ...inARow(marked('+', 'removed'))]
}

function changed(before: string[], after: string[]): DifferenceLine[] {
  const isOneAlone = before.length === 0 || after.length === 0
  const changes = isOneAlone ? undefined : diffArrays(before, after, { maxEditLength: MAX_EDITS })
  if (!changes)
    return [...(isOneAlone ? [] : [UNCOMPARED]), ...inARow(all('-', before)), ...inARow(all('+', after))]
  const kept = changes.filter(({ added, removed }) => !added && !removed)
  const most = 2 * Math.ceil(MAX_IN_A_ROW / 2 / Math.max(1, kept.length))
  return changes.flatMap(({ value, added, removed }, at) => {
    const next = changes[at + 1]
    if (removed && next?.added) return replaced(value, next.value)
    if (added && changes[at - 1]?.removed) return []
    return added || removed ? inARow(all(added ? '+' : '-', value)) : inARow(all(' ', value), most)
  })
}

/** Returns the lines of both texts, each marked as removed, added or unchanged. */
export function difference(one: string, other: string): DifferenceLine[] {
  const [before, after] = [one.split(/\r?\n/), other.split(/\r?\n/)]
  const shorter = Math.min(before.length, after.length)
  const head = sameLines(before, after, shorter)
  const tail = sameLines(before, after, shorter - head, true)
  const middle = (lines: readonly string[]) => lines.slice(head, lines.length - tail)
  return [
    ...inARow(all(' ', before.slice(0, head))),
    ...changed(middle(before), middle(after)),
    ...inARow(all(' ', before.slice(before.length - tail))),
  ]
}
