/** Shares in percent. */
import { percent, progressPercent } from '../../db/percent.ts'
import t from '../support/tap.ts'

/** Marks no-break spaces, which keep a number and its sign on one line. */
const marked = (words: string) => words.replaceAll('\u00a0', '_')

t.test('a share has one decimal, or two below 1 %', (t) => {
  t.strictSame([0, 0.0001, 0.0017, 0.05, 0.914, 1, 1.2].map(percent).map(marked), [
    ...['0_%', '0.01_%', '0.17_%', '5.0_%', '91.4_%', '100_%', '120.0_%'],
  ])
  t.end()
})

t.test('only exact shares are shown as 0 or 100 %', (t) => {
  t.strictSame([percent(1e-9), percent(0.99999)].map(marked), ['0.01_%', '99.9_%'])
  t.strictSame([progressPercent(999, 1_000), progressPercent(5, 5), progressPercent(0, 0)].map(marked), [
    ...['99_%', '100_%', '100_%'],
  ])
  t.end()
})
