/** The three lists of recipients in the one list of a row. */
import { addressees, inOneList } from '../../../db/validation/addressees.ts'
import t from '../../support/tap.ts'

t.test('the lists are merged and split again', (t) => {
  const cases = [
    [{ to: ['a', 'b'] }, { to_emails: ['a', 'b'], first_cc: null, first_bcc: null }],
    [
      { to: ['a'], cc: ['b', 'c'] },
      { to_emails: ['a', 'b', 'c'], first_cc: 1, first_bcc: null },
    ],
    [
      { to: ['a'], bcc: ['b'] },
      { to_emails: ['a', 'b'], first_cc: null, first_bcc: 1 },
    ],
    [
      { to: ['a', 'b'], cc: ['c'], bcc: ['d'] },
      { to_emails: ['a', 'b', 'c', 'd'], first_cc: 2, first_bcc: 3 },
    ],
  ] as const
  for (const [lists, row] of cases) {
    t.strictSame(inOneList(lists), row)
    t.strictSame(addressees(row), { cc: [], bcc: [], ...lists })
  }
  t.end()
})
