/** Figures that documents quote from the bench: each "(row N)" has the number before it in that row. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ROOT } from './support/sources.ts'
import t from './support/tap.ts'

const PAGES = [
  'README.md',
  'api/README.md',
  'api/DECISIONS.md',
  'db/README.md',
  'db/DATABASE.md',
  'workers/README.md',
]
const NUMBER = /\d[\d,]*(?:\.\d+)?/g
const numbersIn = (text: string): string[] => text.match(NUMBER) ?? []
const amount = (number: string): number => Number(number.replaceAll(',', ''))

const results = await readFile(join(ROOT, 'test/bench/RESULTS.md'), 'utf8')
const rows = results.split('\n').flatMap((line) => {
  const id = /^\| (\d+[a-z]?) \|/.exec(line)?.[1]
  return id === undefined ? [] : [{ id, values: numbersIn(line.slice(line.indexOf('|', 2))).map(amount) }]
})

/** Whether a number is one of a row's, rounded, or thousands of it. */
function isOf(values: readonly number[], number: string): boolean {
  const half = 0.5 * 10 ** -(number.split('.')[1]?.length ?? 0)
  return [1, 1_000].some((unit) =>
    values.some((value) => Math.abs(value / unit - amount(number)) <= half + 1e-9),
  )
}

for (const page of PAGES)
  t.test(`${page} quotes the bench results correctly`, async (t) => {
    const text = (await readFile(join(ROOT, page), 'utf8')).replaceAll(/\s+/g, ' ')
    for (const { 0: words, 1: id = '', index } of text.matchAll(/\brow (\d+[a-z]?)\b/g)) {
      const values = rows.filter((row) => row.id === id).flatMap((row) => row.values)
      const before = text.slice(Math.max(0, index - 200), index)
      const [number] = numbersIn(before.split(/[.;:] |row \d+[a-z]?/).at(-1) ?? '').slice(-1)
      t.ok(values.length > 0, `${words} is in the results`)
      if (number !== undefined) t.ok(isOf(values, number), `${number} is of ${words}: ${before.slice(-60)}`)
    }
    t.pass('all are read')
  })
