/** A process's view of a sender between two reads of its row: when it stops, and for how long. */
import {
  createBreaker,
  createBreakers,
  IN_FLIGHT_PER_SEND,
  SLOW_SEND_S,
} from '../../../workers/delivery/breaker.ts'
import type { AttemptOutcome } from '../../../workers/delivery/retry-policy.ts'
import t, { type Test } from '../../support/tap.ts'

const at = (minute: number): Date => new Date(Date.UTC(2026, 2, 1, 12, minute))
const NOW = at(0)
const outcome = (kind: AttemptOutcome['kind'], changes: Partial<AttemptOutcome> = {}): AttemptOutcome => ({
  ...{ kind, detail: 'words' },
  ...changes,
})
const taken = [outcome('accepted')]
const state = { probing: false, wait_seconds: 0, accepted_at: null as Date | null } as never as Parameters<
  ReturnType<typeof createBreaker>['see']
>[0]

/** Creates a breaker with a clock that only the test moves, in seconds. */
function begin(t: Test) {
  let seconds = 100
  const now = performance.now
  performance.now = () => seconds * 1_000
  t.teardown(() => {
    performance.now = now
  })
  const later = (by: number): void => {
    seconds += by
  }
  return { breaker: createBreaker(), later }
}

t.test('a send signals its result: accepted, too fast, unreachable, rejected', async (t) => {
  const { breaker } = begin(t)
  const note = (...outcomes: AttemptOutcome[]) =>
    breaker.note(outcomes, { message: 'a', began_at: NOW, seconds: 0.1 })
  t.strictSame(note(outcome('accepted')), { kind: 'accepted', began_at: NOW })
  t.strictSame(note(outcome('refused'), outcome('accepted', { trouble: 'slow', detail: 'too fast' })), {
    ...{ kind: 'slow', words: 'too fast', began_at: NOW },
  })
  t.strictSame(note(outcome('sender', { trouble: 'connection', wait_seconds: 7 })), {
    ...{ kind: 'connection', words: 'words', wait_seconds: 7, began_at: NOW },
  })
  t.strictSame(note(outcome('sender'))?.kind, 'setup', 'trouble without a name is of its set-up')
  for (const kind of ['refused', 'deferred', 'unknown'] as const) t.equal(note(outcome(kind)), null)
})

t.test('a probe rejected for itself makes way for another', async (t) => {
  const { breaker } = begin(t)
  const note = (...kinds: AttemptOutcome['kind'][]) =>
    breaker.note(
      kinds.map((kind) => outcome(kind)),
      { message: 'a', began_at: NOW, seconds: 0.1 },
    )
  breaker.see({ ...state, probing: true })
  t.strictSame(note('refused', 'deferred'), { kind: 'answered', began_at: NOW })
  t.equal(breaker.waitAfter({ kind: 'answered', began_at: NOW }), 1)
  t.equal(note('refused', 'unknown'), null)
  t.strictSame([note('policy')?.kind, note('policy')?.kind], ['answered', 'answered'])
  t.equal(note('policy')?.kind, 'setup', 'the third in a row')
  t.equal(note('sender', 'refused')?.kind, 'setup')
  t.equal(note('accepted', 'refused')?.kind, 'accepted')
  breaker.see(state)
  t.equal(note('refused'), null, 'it is no probe')
})

t.test('three consecutive policy rejections blame the set-up', async (t) => {
  const { breaker } = begin(t)
  const note = (kind: AttemptOutcome['kind']) =>
    breaker.note([outcome('refused'), outcome(kind)], { message: 'a', began_at: NOW, seconds: 0.1 })
  t.strictSame([note('policy'), note('deferred'), note('policy'), note('deferred')], [null, null, null, null])
  t.strictSame(note('policy'), { kind: 'setup', words: 'words', began_at: NOW })
  t.equal(note('policy')?.kind, 'setup', 'and so is the next')
  t.equal(note('deferred'), null)
  note('accepted')
  t.strictSame([note('policy'), note('policy')], [null, null])
})

t.test('a policy rejection pauses senders without acceptances at once', async (t) => {
  const { breaker } = begin(t)
  const denied = [{ ...outcome('policy'), trouble: 'setup' as const }]
  t.equal(breaker.note(denied, { message: 'a', began_at: NOW, seconds: 0.1 })?.kind, 'setup')
  breaker.note(taken, { message: 'a', began_at: NOW, seconds: 0.1 })
  const later = breaker.note(denied, { message: 'a', began_at: NOW, seconds: 0.1 })
  t.equal(later, null, 'once other mail was taken it may be the recipient’s')
  const { breaker: elsewhere } = begin(t)
  elsewhere.see({ ...state, accepted_at: NOW })
  const other = elsewhere.note(denied, { message: 'a', began_at: NOW, seconds: 0.1 })
  t.equal(other, null, 'by another worker, too')
})

t.test('a failure halts messages released before it, not later ones', async (t) => {
  const { breaker, later } = begin(t)
  t.notOk(breaker.isHalted(0))
  for (const kind of ['accepted', 'refused'] as const)
    breaker.note([outcome(kind)], { message: 'a', began_at: NOW, seconds: 0.1 })
  t.notOk(breaker.isHalted(performance.now()))
  breaker.note([outcome('sender')], { message: 'a', began_at: NOW, seconds: 0.1 })
  t.ok(breaker.isHalted(performance.now()))
  later(0.001)
  t.notOk(breaker.isHalted(performance.now()))
})

t.test('a timely acceptance proves a sender while none is late', async (t) => {
  const { breaker, later } = begin(t)
  t.notOk(breaker.isProven())
  breaker.note(taken, { message: 'a', began_at: NOW, seconds: SLOW_SEND_S })
  t.ok(breaker.isProven())
  breaker.note(taken, { message: 'a', began_at: NOW, seconds: SLOW_SEND_S + 0.1 })
  t.notOk(breaker.isProven(), 'it was slow')
  breaker.note(taken, { message: 'a', began_at: NOW, seconds: 0.1 })
  breaker.note([outcome('refused')], { message: 'a', began_at: NOW, seconds: 0.1 })
  t.notOk(breaker.isProven(), 'it was refused')
  breaker.note(taken, { message: 'a', began_at: NOW, seconds: 0.1 })
  const end = breaker.began()
  later(SLOW_SEND_S)
  t.ok(breaker.isProven())
  later(0.1)
  t.notOk(breaker.isProven(), 'one is late')
  t.equal(breaker.ahead(), IN_FLIGHT_PER_SEND.slow)
  end()
  t.ok(breaker.isProven())
})

t.test("up to a second's worth of messages is in flight", async (t) => {
  const { breaker } = begin(t)
  const after = (seconds: number) => {
    breaker.note(taken, { message: 'a', began_at: NOW, seconds: seconds })
    return breaker.ahead()
  }
  t.equal(breaker.ahead(), 8)
  t.strictSame([0, 0.01, 0.1, 0.15, 0.5, 1, 2, 2.1].map(after), [16, 16, 10, 6, 2, 2, 2, 1])
})

t.test('knows the latest accepted send, by row or own process', async (t) => {
  const { breaker } = begin(t)
  const see = (changes: object) => breaker.see(Object.assign({}, state, changes))
  t.equal(breaker.acceptedAt(), null)
  t.notOk(breaker.isWatched())
  breaker.note(taken, { message: 'a', began_at: at(5), seconds: 0.1 })
  breaker.note(taken, { message: 'a', began_at: at(3), seconds: 0.1 })
  t.strictSame(breaker.acceptedAt(), at(5), 'they may end in another order')
  see({ accepted_at: at(4), probing: true })
  t.ok(breaker.isWatched())
  t.strictSame(breaker.acceptedAt(), at(5))
  see({ accepted_at: at(6) })
  t.strictSame(breaker.acceptedAt(), at(6))
  t.notOk(breaker.isWatched())
  see({ accepted_at: null })
  t.strictSame(breaker.acceptedAt(), at(5))
})

t.test('a message waits a second longer than its sender’s pause', async (t) => {
  const { breaker } = begin(t)
  const rest = (kind: 'setup' | 'connection' | 'slow', wait_seconds?: number) =>
    breaker.waitAfter({ kind, words: '', wait_seconds, began_at: NOW })
  t.equal(breaker.waitAfter(null), 1)
  t.equal(breaker.waitAfter({ kind: 'accepted', began_at: NOW }), 1)
  t.strictSame([rest('slow', 9), rest('setup'), rest('connection'), rest('setup', 9)], [1, 3, 2, 10])
  t.equal(rest('setup', 3_600), 31)
  for (const kind of ['slowed', 'paused', 'slowed'] as const) breaker.changed(kind)
  const rests = [rest('setup'), rest('connection'), rest('setup', 1)]
  t.strictSame(rests, [5, 3, 5], 'the second trouble in a row')
  breaker.changed('recovered')
  t.equal(rest('setup'), 3)
})

t.test('each sender has its own breaker, up to 10,000', async (t) => {
  const breakers = createBreakers()
  const [first, second] = [breakers.of({ key: '0' }), breakers.of({ key: '1' })]
  t.not(first, second)
  for (let key = 2; key < 10_000; key++) breakers.of({ key: String(key) })
  t.equal(breakers.of({ key: '0' }), first)
  breakers.of({ key: 'one more' })
  t.equal(breakers.of({ key: '0' }), first)
  t.not(breakers.of({ key: '1' }), second)
})
