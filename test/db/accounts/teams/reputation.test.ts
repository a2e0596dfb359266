/** The effect of bounce and complaint rates on a team. */
import {
  bulkPausedBecause,
  describeRates,
  judgeSending,
  pauseFigures,
  percentOf,
} from '../../../../db/accounts/teams/reputation.ts'
import t from '../../../support/tap.ts'

const LIMITS = { bounce_percent: 10, complaint_percent: 0.3, least_emails: 500 }
const judged = (sent: number, hard_bounced: number, complained: number, limits = LIMITS) =>
  judgeSending({ sent, hard_bounced, complained }, limits)

t.test("doesn't judge teams with few emails", async (t) => {
  t.equal(judged(499, 499, 499), null)
  t.match(judged(500, 500, 0), { reason: 'team_bounces' })
  t.equal(judged(0, 0, 0, { ...LIMITS, least_emails: 1 }), null)
})

t.test('warns above a limit, and pauses above a higher one', async (t) => {
  t.equal(judged(1_000, 50, 0), null, '5 % is not over 5 %')
  t.equal(judged(1_000, 51, 0), 'warning')
  t.equal(judged(1_000, 100, 0), 'warning', '10 % is not over 10 %')
  t.strictSame(judged(1_000, 101, 0), { reason: 'team_bounces', sent: 1_000, count: 101, limit: 10 })
  t.equal(judged(10_000, 0, 10), null)
  t.equal(judged(10_000, 0, 11), 'warning')
  t.equal(judged(10_000, 0, 30), 'warning')
  t.strictSame(judged(10_000, 0, 31), { reason: 'team_complaints', sent: 10_000, count: 31, limit: 0.3 })
})

t.test('complaints count from the third, also for the warning', async (t) => {
  t.equal(judged(500, 0, 2), null)
  t.match(judged(500, 0, 3), { reason: 'team_complaints' })
  t.equal(judged(2_500, 0, 3), 'warning')
})

t.test('0 turns a limit off', async (t) => {
  t.equal(judged(1_000, 900, 0, { ...LIMITS, bounce_percent: 0 }), 'warning')
  t.equal(judged(1_000, 0, 900, { ...LIMITS, complaint_percent: 0 }), 'warning')
  t.match(judged(1_000, 900, 900, { ...LIMITS, bounce_percent: 0 }), { reason: 'team_complaints' })
})

t.test('pauses and warnings name the rates, the counts and the limit', async (t) => {
  const bounces = { reason: 'team_bounces', sent: 1_600, count: 192, limit: 10 } as const
  t.match(pauseFigures(bounces), /^12\.0 % of 1,600 .*bounced.* 10\.0 %$/)
  const complaints = pauseFigures({ ...bounces, reason: 'team_complaints', count: 5 })
  t.match(complaints, /^0\.31 % of 1,600 .*spam.* 10\.0 %$/)
  t.match(bulkPausedBecause(bounces), /12\.0 % .* the limit is 10\.0 %$/)
  const rates = describeRates({ sent: 1_600, hard_bounced: 100, complained: 2 })
  t.match(rates, /^6\.3 % of 1,600 .*bounced.* 0\.13 % .*spam$/)
  t.strictSame([percentOf(1, 3), percentOf(2, 3), percentOf(0, 0)], [33.33, 66.67, 0])
})
