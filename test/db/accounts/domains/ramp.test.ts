/** The ramp of a new sending domain: its next limit, and the days until all emails are sent. */
import {
  daysLeft,
  parseRampStart,
  rampReached,
  rampToday,
  USUAL_RAMP,
} from '../../../../db/accounts/domains/ramp.ts'
import t from '../../../support/tap.ts'

const after = (changes: Partial<Parameters<typeof rampToday>[0]> = {}, factor = 2) =>
  rampToday({ limit: 500, used: 500, bounced: 0, complained: 0, is_today: false, factor, ...changes }).limit

t.test('raises a half-used limit after few bounces and complaints', async (t) => {
  t.equal(after(), 1_000)
  t.equal(after({}, 1.5), 750)
  t.equal(after({ used: 250 }), 1_000)
  t.equal(after({ used: 249 }), 500)
  t.equal(after({ bounced: 9 }), 1_000)
  t.equal(after({ bounced: 10 }), 500, '2 % is not less than 2 %')
  t.equal(after({ limit: 2_000, used: 2_000, complained: 1 }), 4_000)
  t.equal(after({ limit: 2_000, used: 2_000, complained: 2 }), 2_000, '0.1 % is not less than 0.1 %')
  t.equal(after({ is_today: true }), 500)
  t.equal(after({ limit: 80_000, used: 80_000 }), 100_000)
  t.equal(after({ limit: 333, used: 333 }, 1.5), 499)
  const day = { limit: 500, used: 30, bounced: 0, complained: 0, factor: 2 }
  t.strictSame(rampToday({ ...day, is_today: true }), { limit: 500, used: 30 })
  t.strictSame(rampToday({ ...day, is_today: false }), { limit: 500, used: 0 })
})

t.test('a setting contains the first limit and the factor', async (t) => {
  t.strictSame(parseRampStart('500x2'), { limit: 500, factor: 2 })
  t.strictSame(parseRampStart('500x2'), USUAL_RAMP)
  t.strictSame(parseRampStart('50x1.5'), { limit: 50, factor: 1.5 })
  t.strictSame(parseRampStart('999999x999.999'), { limit: 999_999, factor: 999.999 })
  t.strictSame(parseRampStart('1x1'), { limit: 1, factor: 1 })
  t.equal(parseRampStart('off'), null)
  const malformed = ['', '500', 'x2', '500x', 'on', 'a500x2', '500x2x', '500x2.', '500x.5']
  for (const odd of [...malformed, '0x2', '500x0.5', '1000000x2', '500x1000', '500x1.0001'])
    t.equal(parseRampStart(odd), undefined, odd)
})

t.test('counts the days until all emails are sent', async (t) => {
  const days = (emails: number, left = 500, factor = 2) => daysLeft(emails, { limit: 500, left, factor })
  t.equal(days(500), 0)
  t.equal(days(501), 1)
  t.equal(days(1_500), 1)
  t.equal(days(1_501), 2)
  t.equal(days(1_500, 0, 1), 3)
  t.equal(days(1_501, 0, 1), 4)
  t.equal(days(400, 0, 1), 1)
  t.equal(days(1e15, 0, 1), 2e12, 'a limit that never rises is not counted day by day')
  t.equal(days(1_000_000, 0, 200), 1, 'its limit reaches 100,000, and has no effect then')
  t.equal(days(1_000_000, 0, 20), 2)
  t.match(rampReached({ name: 'a.test', limit: 1_500 }), /1,500 .*a\.test/)
})
