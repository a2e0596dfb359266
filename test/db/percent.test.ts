/** Shares in percent. */
import { percent, progressPercent } from '../../db/percent.ts'
import t from '../support/tap.ts'

t.test('a share has one decimal, or two below 1 %', (t) => {
  t.strictSame([0, 0.0001, 0.0017, 0.05, 0.914, 1, 1.2].map(percent), [
    ...['0 %', '0.01 %', '0.17 %', '5.0 %', '91.4 %', '100 %', '120.0 %'],
  ])
  t.end()
})

t.test('only exact shares are shown as 0 or 100 %', (t) => {
  t.strictSame([percent(1e-9), percent(0.99999)], ['0.01 %', '99.9 %'])
  const progress = [progressPercent(999, 1_000), progressPercent(5, 5), progressPercent(0, 0)]
  t.strictSame(progress, [...['99 %', '100 %', '100 %']])
  t.end()
})
