/** When a search without an index stops, and how long its parts are. */
import { partLengths, type SearchPart, searchParts } from '../../../db/postgres/search-parts.ts'
import t from '../../support/tap.ts'

t.test('quick parts double until the longest', (t) => {
  const lengths: number[] = []
  for (const length of partLengths({ first: 10, longest: 50 }, Number.POSITIVE_INFINITY)) {
    lengths.push(length)
    if (lengths.length === 5) break
  }
  t.strictSame(lengths, [10, 20, 40, 50, 50])
  t.end()
})

/** Returns the lengths of parts that last `took` milliseconds each. */
const lengthsOf = (first: number, patience: number, took: readonly number[]): number[] => {
  let time = 0
  const lengths: number[] = []
  for (const length of partLengths({ first }, patience, () => time)) {
    lengths.push(length)
    const part = took[lengths.length - 1]
    if (part === undefined) break
    time += part
  }
  return lengths
}

t.test('a slow part is not followed by a longer one', (t) => {
  t.strictSame(lengthsOf(10, 60, [40, 40]), [10, 10])
  t.strictSame(lengthsOf(10, 60, [24, 40]), [10, 15])
  t.end()
})

t.test('parts become shorter if they exceed the target time', (t) => {
  t.strictSame(lengthsOf(1_000, Number.POSITIVE_INFINITY, [1_250, 1_000]), [1_000, 800, 800])
  t.end()
})

t.test('reads at least one part, and none after the time', (t) => {
  t.strictSame([...partLengths({ first: 10 }, 0)], [10])
  t.strictSame([...partLengths({ first: 10 }, -1)], [10])
  t.end()
})

/** Searches numbers below `before`, from 100 down to 1, for multiples of ten. */
const multiples = async ({ before = '101', limit, length }: SearchPart) => {
  const read = Array.from({ length }, (_, nth) => Number(before) - 1 - nth).filter((each) => each > 0)
  const rows = read.filter((each) => each % 10 === 0).slice(0, limit)
  return { rows, reached: read.length < length ? null : String(read.at(-1)) }
}

t.test('a search ends at a full page, its end or limit', async (t) => {
  const search = (page: { before?: string; limit: number }, patience: number) =>
    searchParts({ ...page, first: 7, patience }, multiples)
  t.strictSame(await search({ limit: 3 }, Number.POSITIVE_INFINITY), { rows: [100, 90, 80], reached: null })
  t.strictSame(await search({ limit: 3, before: '20' }, Number.POSITIVE_INFINITY), {
    rows: [10],
    reached: null,
  })
  t.strictSame(await search({ limit: 3 }, -1), { rows: [100], reached: '94' })
  t.strictSame(await search({ limit: 3, before: '94' }, -1), { rows: [90], reached: '87' })
  t.strictSame(await search({ limit: 1 }, -1), { rows: [100], reached: null })
})

t.test('a part is limited to the missing rows', async (t) => {
  const limits: number[] = []
  await searchParts({ limit: 3, first: 1, patience: Number.POSITIVE_INFINITY }, async ({ limit }) => {
    limits.push(limit)
    return { rows: [0], reached: 'key' }
  })
  t.strictSame(limits, [3, 2, 1])
})
