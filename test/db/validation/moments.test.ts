// Times to send at, and expiry. DECISIONS: Scheduled messages.
import { computeTimes, isMoment, momentFault, shownTimes, timeError } from '../../../db/validation/moments.ts'
import t from '../../support/tap.ts'

const NOW = new Date('2026-03-01T12:00:00.000Z')
const after = (ms: number): string => new Date(NOW.getTime() + ms).toISOString()
const [MINUTE, DAY] = [60_000, 86_400_000]

t.test('a time has a time zone and a real date', async (t) => {
  for (const time of [
    ...['2026-03-01T09:00:00Z', '2026-03-01t09:00:00.123456789z', '2028-02-29T00:00:00Z'],
    ...['2026-03-01T09:00:00+05:30', '2026-03-01T09:00:00-00:00'],
    ...['0001-01-01T00:00:00Z', '9999-12-31T23:59:59Z'],
  ])
    t.ok(isMoment(time), time)
  for (const time of [
    ...['', 'tomorrow', '2026-03-01', '2026-03-01T09:00:00', '2026-03-01 09:00:00Z', '2026-03-01T09:00Z'],
    ...['2026-02-29T00:00:00Z', '2026-02-30T09:00:00Z', '2026-13-01T09:00:00Z', '2026-03-01T24:00:00Z'],
    ...['0001-01-01T00:00:00+00:01', '9999-12-31T23:59:59-00:01'],
    ...['2026-03-01T09:00:00.Z', '2026-03-01T09:00:00.1234567890Z', '2026-03-01T09:00:00+0530'],
    ...[
      'x2026-03-01T09:00:00Z',
      '2026-03-01T09:00:00Zx',
      '2026-03-01T09:00:00Z\0',
      '+002026-03-01T09:00:00Z',
    ],
  ])
    t.notOk(isMoment(time), time)
})

t.test('a time is at most 90 days ahead or five minutes late', async (t) => {
  const [far, late] = ['must be at most 90 days ahead', 'must not be more than 5 minutes in the past']
  const moments = [90 * DAY, 90 * DAY + 1, -5 * MINUTE, -5 * MINUTE - 1]
  const faults = moments.map((ms) => momentFault(after(ms), NOW))
  t.strictSame(faults, [null, far, null, late])
  const refusal = (scheduled_at: string | null) =>
    timeError({ when: { scheduled_at, expires_in: 60 }, path: 'emails[0].' }, NOW)
  t.match(refusal(after(91 * DAY)), { code: 'bad_request', message: `emails[0].scheduled_at ${far}` })
  t.strictSame([refusal(after(DAY)), refusal(null), timeError({ path: '' }, NOW)], [null, null, null])
})

t.test('an expiry counts from the scheduled time, or from now', async (t) => {
  const times = (ms: number | null, expires_in: number | null) =>
    computeTimes({ scheduled_at: ms === null ? null : after(ms), expires_in }, NOW)
  t.strictSame(computeTimes(undefined, NOW), { scheduled_at: null, expires_at: null, due_at: null })
  const scheduled = times(DAY, 60)
  t.strictSame(scheduled, { scheduled_at: after(DAY), expires_at: after(DAY + MINUTE), due_at: after(DAY) })
  t.strictSame(times(1, null), { scheduled_at: after(1), expires_at: null, due_at: after(1) })
  for (const ms of [0, -MINUTE])
    t.strictSame(times(ms, 60), { scheduled_at: after(ms), expires_at: after(MINUTE), due_at: null })
  t.strictSame(times(null, 60), { scheduled_at: null, expires_at: after(MINUTE), due_at: null })
})

t.test('a row shows the times that were given', async (t) => {
  const [scheduled_at, expires_at] = [after(DAY), after(MINUTE)]
  t.strictSame(shownTimes({ scheduled_at, expires_at: null }), { scheduled_at })
  t.strictSame(shownTimes({ scheduled_at: null, expires_at }), { expires_at })
})
