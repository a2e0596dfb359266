/** The rate of a sender: recovery, bucket, halving, pauses and probes. Pure rules. */
import {
  type Pace,
  PROBE_SECONDS,
  paceAt,
  paused,
  reserve,
  slowed,
  stateAt,
} from '../../../../db/delivery/senders/rate-limit.ts'
import t from '../../../support/tap.ts'

const START = new Date('2026-03-01T12:00:00Z')
const after = (seconds: number): Date => new Date(START.getTime() + seconds * 1_000)
const AT_EASE = {
  paused_until: null,
  pause_reason: null,
  troubles: 0,
  troubled_at: null,
  accepted_at: null,
  deferrals: null,
}
const pace: Pace = { rate: 10, slowed_at: null, tokens: 1, refilled_at: START, ...AT_EASE }
const row = {
  key: 'smtp:x',
  rate: 10,
  slowed_at: null,
  tokens: 0,
  refilled_at: START.toISOString(),
  ...AT_EASE,
}

t.test('a sender that was never slowed has its maximum rate', async (t) => {
  t.match(paceAt(row, 20, after(0.1)), { rate: 20, slowed_at: null, tokens: 2, ...AT_EASE })
  t.match(paceAt(row, 20, after(60)), { tokens: 20 }, 'it saves up a second’s sends')
  t.match(paceAt(row, 20, after(60), 0.1), { tokens: 2 })
  t.match(paceAt(row, 2, after(60), 0.1), { tokens: 1 }, 'one at least, or none would ever go')
})

t.test('a slowed sender recovers a tenth per minute', async (t) => {
  const slow = { ...row, rate: 10, slowed_at: START.toISOString() }
  const [rates, since] = [[], []] as [number[], (string | undefined)[]]
  for (const seconds of [-60, 0, 59, 60, 150, 179, 180, 1_000]) {
    const { rate, slowed_at } = paceAt(slow, 40, after(seconds))
    rates.push(rate)
    since.push(slowed_at?.toISOString().slice(14, 19))
  }
  t.strictSame(rates, [10, 10, 10, 14, 18, 18, 22, 40])
  t.strictSame(since, ['00:00', '00:00', '00:00', '01:00', '02:00', '02:00', '03:00', undefined])
  t.equal(paceAt({ ...slow, rate: 36 }, 40, after(60)).slowed_at, null, 'at its ceiling it is slow no more')
})

t.test('reads pauses and failures from the row', async (t) => {
  const [until, trouble, taken] = [after(9), after(1), after(2)]
  const troubled = { paused_until: until, troubled_at: trouble, accepted_at: taken }
  const texts = Object.fromEntries(Object.entries(troubled).map(([name, date]) => [name, date.toISOString()]))
  const found = paceAt({ ...row, ...(texts as object), pause_reason: 'words', troubles: 2 }, 10, START)
  const { paused_until, troubled_at, accepted_at, pause_reason, troubles } = found
  t.strictSame({ paused_until, troubled_at, accepted_at }, troubled)
  t.strictSame({ pause_reason, troubles }, { pause_reason: 'words', troubles: 2 })
})

t.test('returns the pause and the probe of a sender', async (t) => {
  const calm = stateAt(pace, START)
  t.strictSame(calm, { now: START, wait_seconds: 0, probing: false, accepted_at: null, deferring: false })
  const troubled = { ...pace, paused_until: after(2.5), troubles: 1, accepted_at: START }
  const paused = stateAt(troubled, START)
  t.strictSame(paused, { now: START, wait_seconds: 2.5, probing: true, accepted_at: START, deferring: false })
  t.equal(stateAt(troubled, after(3)).wait_seconds, 0)
})

t.test('a pause without a reason gets a default text', async (t) => {
  t.match(reserve({ ...pace, paused_until: after(0.5) }, [1], 5, START), {
    pace: { paused_until: after(0.5).toISOString() },
    reservation: { wait_seconds: 1, reason: 'the sender is paused' },
  })
})

t.test('one send probes a failed sender for 30 seconds', async (t) => {
  const troubled = { ...pace, troubles: 1, pause_reason: 'logged out' }
  t.equal(PROBE_SECONDS, 30)
  const { pace: left, reservation } = reserve(troubled, [1, 1], 5, START)
  t.strictSame(left, { ...troubled, paused_until: after(30) })
  t.strictSame(reservation, {
    delays: [0],
    wait_seconds: 1,
    reason: 'logged out',
    state: { now: START, wait_seconds: 0, probing: true, accepted_at: null, deferring: false },
  })
  const probed = reserve({ ...troubled, pause_reason: null }, [1], 5, START).reservation.reason
  t.equal(probed, 'a message is testing the sender')
  t.equal(reserve(troubled, [], 5, START).pace, troubled, 'who sends nothing does not probe')
})

t.test('halving removes the burst and keeps a debt', async (t) => {
  t.strictSame(slowed(pace, START, START), {
    pace: { ...pace, rate: 5, slowed_at: START, tokens: 0 },
    isNews: true,
  })
  t.match(slowed({ ...pace, tokens: -3 }, START, START).pace, { tokens: -3 })
  t.equal(slowed({ ...pace, rate: 0.3 }, START, START).pace.rate, 0.2, 'it never stops')
})

t.test('rejections within a second of a halving count once', async (t) => {
  const slow = { ...pace, rate: 5, slowed_at: START }
  const again = (now: Date, since: Date) => slowed(slow, now, since).pace.rate
  t.strictSame([again(after(0.9), after(0.5)), again(after(9), after(-1))], [5, 5])
  t.strictSame([again(after(1), after(0)), again(after(9), after(1))], [2.5, 2.5])
  t.notOk(slowed(slow, after(0.9), START).isNews)
  t.notOk(slowed(slow, after(9), after(8)).isNews, 'it was slow already')
})

t.test('records pauses once per reason, and the longest stays', async (t) => {
  const pause = (from: Pace, seconds: number, reason = 'words', now = START) =>
    paused(from, now, { seconds, reason })
  const first = pause(pace, 10)
  t.strictSame(first, { pace: { ...pace, paused_until: after(10), pause_reason: 'words' }, isNews: true })
  for (const seconds of [9, 10])
    t.strictSame(pause(first.pace, seconds, 'others'), { pace: first.pace, isNews: false })
  t.strictSame(pause(first.pace, 20), { pace: { ...first.pace, paused_until: after(20) }, isNews: false })
  t.ok(pause(first.pace, 20, 'others').isNews)
  t.ok(pause(first.pace, 20, 'words', after(10)).isNews, 'the first is over')
  t.ok(pause({ ...pace, pause_reason: 'words' }, 20).isNews)
})
