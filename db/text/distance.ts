/**
 * How far two words are from each other, to suggest the one that was meant. Pure; takes time by the product of their
 * lengths, so that a caller bounds them.
 */

/** How many letters have to be added, removed or changed to make one text of the other. */
export function distance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at)
  for (const [line, letter] of [...one].entries()) {
    const next = [line + 1]
    for (const [at, against] of [...other].entries()) {
      const changed = (row[at] ?? 0) + (letter === against ? 0 : 1)
      next.push(Math.min(changed, (row[at + 1] ?? 0) + 1, (next[at] ?? 0) + 1))
    }
    row = next
  }
  return row.at(-1) ?? 0
}
