/** What changed between two texts, line by line. Pure. Texts beyond a bound are shown whole, one after the other. */

type DifferenceLine = { sign: '+' | '-' | ' '; text: string }

/** Cells of the table that finds the longest common part. */
const MAX_CELLS = 4_000_000

const all = (sign: '+' | '-', lines: readonly string[]): DifferenceLine[] =>
  lines.map((text) => ({ sign, text }))

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

/** The lines of both, each as gone, new or kept. */
export function difference(one: string, other: string): DifferenceLine[] {
  const before = one.split(/\r?\n/)
  const after = other.split(/\r?\n/)
  if (before.length * after.length > MAX_CELLS) return [...all('-', before), ...all('+', after)]
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
