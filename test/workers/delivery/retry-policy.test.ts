/** How deliveries end. Pure rules. DECISIONS: Temporary failures, Lost responses, Sender failures. */
import { createBreakers } from '../../../workers/delivery/breaker.ts'
import {
  type AttemptHistory,
  type AttemptOutcome,
  judgePolicy,
  nextStep,
} from '../../../workers/delivery/retry-policy.ts'
import { createWriteBuffer } from '../../../workers/delivery/write-buffer.ts'
import type { Outcome } from '../../../workers/providers/provider.ts'
import t from '../../support/tap.ts'

const NOW = new Date('2026-03-01T12:00:00Z')
const ago = (hours: number): Date => new Date(NOW.getTime() - hours * 3_600_000)
const fresh: AttemptHistory = { since: null, deferrals: 0, unknowns: 0 }
const old: AttemptHistory = { since: ago(25).toISOString(), deferrals: 9, unknowns: 0 }
const at = { now: NOW, unknown_wait: 600, sender_pause: 1, spread: 0 }
const outcome = (kind: AttemptOutcome['kind'], changes: Partial<AttemptOutcome> = {}): AttemptOutcome => ({
  kind,
  detail: 'words',
  ...changes,
})

t.test('an accepted or permanently rejected message ends', async (t) => {
  t.strictSame(nextStep([outcome('accepted'), outcome('refused')], old, at), { end: 'completed' })
})

t.test('the delay doubles from 30 s to half an hour', async (t) => {
  const pauseBefore = (deferrals: number, wait_seconds: number | undefined, spread: number): unknown => {
    const { end, ...rest } = nextStep(
      [outcome('deferred', wait_seconds === undefined ? {} : { wait_seconds })],
      { ...fresh, deferrals },
      { ...at, spread },
    )
    return end === 'again' && 'seconds' in rest ? rest.seconds : end
  }
  t.ok(Number(pauseBefore(0, undefined, 1)) <= 30)
  const pauses = [0, 1, 2, 3, 20].map((tries) => pauseBefore(tries, undefined, 0))
  t.strictSame(pauses, [2, 4, 8, 16, 1_800])
  const asked = [0, 1].map((tries) => pauseBefore(tries, 6, 0.5))
  t.strictSame(asked, [6, 12], 'at least what was asked for')
  t.equal(pauseBefore(3, 3_600, 0), 3_600)
  t.equal(pauseBefore(1, undefined, 1), 8, 'those that were put off together are spread over twice the time')
})

t.test('a deferred message only fails after 24 h of attempts', async (t) => {
  const day = { ...old, since: ago(23.9).toISOString() }
  t.match(nextStep([outcome('deferred')], day, at), { end: 'again' })
  t.strictSame(nextStep([outcome('deferred')], old, at), { end: 'given_up', reason: 'words' })
})

t.test('a sender outage counts as no attempt', async (t) => {
  for (const kind of ['sender', 'policy'] as const) {
    t.strictSame(nextStep([outcome(kind)], old, { ...at, sender_pause: 9 }), { end: 'snoozed', seconds: 9 })
    t.strictSame(nextStep([outcome(kind)], old, { ...at, sender_pause: 0 }), { end: 'snoozed', seconds: 1 })
  }
})

t.test('a lost response is retried after 10 min, three times', async (t) => {
  const lost = [outcome('unknown')]
  t.strictSame(nextStep(lost, fresh, at), { end: 'again', seconds: 600 })
  t.strictSame(nextStep(lost, { ...fresh, unknowns: 1 }, at), { end: 'again', seconds: 600 })
  t.match(nextStep(lost, { ...fresh, unknowns: 2 }, at), {
    end: 'given_up',
    reason: 'no response after 3 attempts, so it may have arrived: words',
  })
})

t.test("an attempt waits for its recipients' longest wait", async (t) => {
  const deferred = [5, 90, 30].map((wait_seconds) => outcome('deferred', { wait_seconds }))
  t.strictSame(nextStep(deferred, fresh, at), { end: 'again', seconds: 90 })
  t.strictSame(nextStep([outcome('deferred')], fresh, at), { end: 'again', seconds: 2 })
  const lost = outcome('unknown', { wait_seconds: 900 })
  t.strictSame(nextStep([lost], fresh, at), { end: 'again', seconds: 900 })
  t.strictSame(nextStep([outcome('unknown')], fresh, { ...at, unknown_wait: 0 }), {
    end: 'again',
    seconds: 0,
  })
})

t.test('a message is attempted once more at exactly 24 h', async (t) => {
  t.match(nextStep([outcome('deferred')], { ...fresh, since: ago(24).toISOString() }, at), { end: 'again' })
})

const policy = (blames: 'recipient' | 'identity'): Outcome => ({ kind: 'policy', detail: '5.7.1', blames })

t.test('a policy rejection concerns the recipient while others are accepted', async (t) => {
  const never = { held_at: null, accepted_at: null }
  const judged = (given: [string, Outcome][], context = never as Parameters<typeof judgePolicy>[1]) =>
    [...judgePolicy(new Map(given), context).values()].map(({ kind }) => kind)
  t.strictSame(judged([['a', policy('recipient')]]), ['policy'], 'not known: our set-up may be at fault')
  const taken: Outcome = { kind: 'accepted', detail: '' }
  const kinds = judged([
    ['a', policy('recipient')],
    ['b', taken],
  ])
  t.strictSame(kinds, ['refused', 'accepted'])
  const unheld = { held_at: null, accepted_at: ago(1) }
  t.strictSame(judged([['a', policy('recipient')]], unheld), ['policy'], 'it was not held back before')
  const before = { held_at: ago(1), accepted_at: ago(2) }
  t.strictSame(judged([['a', policy('recipient')]], before), ['policy'], 'one taken before proves nothing')
  const since = { held_at: ago(2), accepted_at: ago(1) }
  t.strictSame(judged([['a', policy('recipient')]], since), ['refused'])
  const together = { held_at: ago(1), accepted_at: ago(1) }
  t.strictSame(judged([['a', policy('recipient')]], together), ['policy'], 'taken at the same moment')
  const [refused, waits] = judgePolicy(
    new Map([
      ['a', policy('recipient')],
      ['b', policy('identity')],
    ]),
    since,
  ).values()
  t.strictSame(refused, { kind: 'refused', detail: '5.7.1', effect: 'none' }, 'a contact is not to blame')
  t.strictSame(waits, { kind: 'deferred', detail: '5.7.1', wait_seconds: 600 })
  t.strictSame(judged([['a', policy('identity')]], since), ['deferred'], 'an identity’s mail waits')
})

t.test('three consecutive policy rejections stop the sender', async (t) => {
  const breaker = createBreakers().of({ key: 'smtp:relay.test' })
  const note = (kind: AttemptOutcome['kind'], began = NOW) =>
    breaker.note([outcome(kind)], { message: 'a', began_at: began, seconds: 0.1 })?.kind ?? null
  t.strictSame([note('policy'), note('policy'), note('accepted')], [null, null, 'accepted'])
  t.strictSame([note('policy'), note('policy')], [null, null])
  const released = performance.now()
  t.notOk(breaker.isHalted(released))
  t.equal(note('policy'), 'setup')
  t.ok(breaker.isHalted(released), 'what was let go before does not begin any more')
})

const ROOMY = { room: 1_000 }

t.test('writes buffered items in order, without loss', async (t) => {
  const written: number[][] = []
  let writing = 0
  const buffer = createWriteBuffer<number>(async (items) => {
    t.equal(++writing, 1)
    await new Promise((resolve) => setImmediate(resolve))
    written.push([...items])
    writing -= 1
  }, ROOMY)
  for (let item = 0; item < 450; item++) buffer.add(item)
  await buffer.flush()
  t.strictSame(written.flat(), [...Array(450).keys()])
  t.ok(written.length < 5, `${written.length} writes`)
})

/** Creates a buffer whose writes the test ends. */
function heldBuffer(room: number) {
  const writes: PromiseWithResolvers<void>[] = []
  const written: number[][] = []
  const buffer = createWriteBuffer<number>(
    async (items) => {
      written.push([...items])
      writes.push(Promise.withResolvers<void>())
      await writes.at(-1)?.promise
    },
    // Only the capacity decides when it writes.
    { room, lingerMs: 60_000 },
  )
  return { buffer, written, end: () => writes.at(-1)?.resolve() }
}

t.test('senders that outpace the writer wait for capacity', async (t) => {
  const { buffer, written, end } = heldBuffer(4)
  const [first, second, third] = [await buffer.reserve(), await buffer.reserve(), await buffer.reserve()]
  let begun = false
  const waiting = buffer.reserve().then((free) => {
    begun = true
    return free
  })
  buffer.add(1)
  first()
  await new Promise((resolve) => setImmediate(resolve))
  t.strictSame(written, [[1]], 'half of what those under way leave is written at once')
  t.notOk(begun, 'what is not written counts as what is under way does')
  end()
  const fourth = await waiting
  for (const free of [second, third, fourth]) free()
  for (let again = 0; again < 3; again++) await buffer.reserve()
  t.pass('what was never added has given its room back')
})

t.test('items that arrive during a write also wait for others', async (t) => {
  const { buffer, written, end } = heldBuffer(4)
  for (const item of [1, 2, 3]) buffer.add(item)
  t.strictSame(written, [[1, 2]], 'the second was half of the room')
  end()
  await new Promise((resolve) => setImmediate(resolve))
  t.strictSame(written, [[1, 2]], 'one waits for company')
  buffer.add(4)
  t.strictSame(written, [
    [1, 2],
    [3, 4],
  ])
  end()
  await buffer.flush()
})
