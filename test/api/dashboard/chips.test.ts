/** Chips of filters. */
import { chipCount } from '../../../api/dashboard/server/chips.ts'
import t from '../../support/tap.ts'

t.test('counts below 10,000 are exact', async (t) => {
  t.strictSame([0, 999, 1_172, 9_999].map(chipCount), ['0', '999', '1,172', '9,999'])
  t.strictSame([10_000, 132_400].map(chipCount), ['10K', '132K'])
})
