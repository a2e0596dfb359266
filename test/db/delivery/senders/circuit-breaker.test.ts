/** A sender's circuit breaker: when it opens and closes, the length of pauses, and its timeline. */
import {
  applySignals,
  failingSenders,
  pauseAfter,
  type SenderSignal,
  stateOfSender,
} from '../../../../db/delivery/senders/circuit-breaker.ts'
import { senderEvents } from '../../../../db/delivery/senders/events.sql.ts'
import { reserveSends } from '../../../../db/delivery/senders/rate-limit.ts'
import { sendersByKeys } from '../../../../db/delivery/senders/senders.sql.ts'
import { stopClock } from '../../../support/clock.ts'
import { testDatabase } from '../../../support/database.ts'
import { EMPTY } from '../../../support/empty.ts'
import { openPool } from '../../../support/pool.ts'
import t from '../../../support/tap.ts'

const START = new Date('2026-03-01T12:00:00.000Z')
const at = (seconds: number): Date => new Date(START.getTime() + seconds * 1_000)
/** Seconds since START of a time in a sender's row. */
const seconds = (time: string | null | undefined): number | null =>
  time === null || time === undefined ? null : (Date.parse(time) - START.getTime()) / 1_000

const database = await openPool(t, (await testDatabase(t)).url, { size: 2 })

type Said = [
  kind: Exclude<SenderSignal['kind'], 'deferred'>,
  began: number,
  words?: string,
  wait_seconds?: number,
]
const signalOf = ([kind, began, words = 'words', wait_seconds]: Said): SenderSignal =>
  kind === 'accepted' || kind === 'answered'
    ? { kind, began_at: at(began) }
    : { kind, began_at: at(began), words, ...(wait_seconds !== undefined && { wait_seconds }) }

let senders = 0
/** A sender with functions that record the results of sends, and read its row. */
function aSender(prefix = 'smtp:') {
  const sender = { key: `${prefix}${++senders}`, ceiling: 10 }
  const say = async (now: number, ...said: Said[]) => {
    await stopClock(database, at(now))
    const signals = said.map(signalOf)
    const changes = await database.transaction((tx) => applySignals(tx, [{ sender, signals }]))
    return changes.map(({ sender: key, ...change }) => {
      t.equal(key, sender.key)
      return Object.values(change).join(' ')
    })
  }
  const stored = async () => {
    const row = (await sendersByKeys(database, [sender.key])).rows.get(sender.key)
    const { troubles, pause_reason: reason, rate } = row ?? {}
    const [troubled, until, accepted] = [row?.troubled_at, row?.paused_until, row?.accepted_at].map(seconds)
    return { troubles, reason, rate, troubled, until, accepted }
  }
  const timeline = async () =>
    (await senderEvents(database, 20))
      .filter((event) => event.sender === sender.key)
      .map(({ time, kind, detail }) => `${seconds(time)} ${kind} ${detail}`)
      .toReversed()
  return { sender, say, stored, timeline }
}

t.test('pauses grow with consecutive failures, up to a maximum', async (t) => {
  const steps = (kind: 'connection' | 'setup') => [0, 1, 2, 3, 4, 5, 6, 99].map((n) => pauseAfter(kind, n))
  t.strictSame(steps('connection'), [1, 1, 2, 4, 6, 6, 6, 6])
  t.strictSame(steps('setup'), [2, 2, 4, 8, 16, 30, 30, 30])
})

t.test('a failure opens the circuit, an older one changes nothing', async (t) => {
  const { say, stored, timeline } = aSender()
  t.strictSame(await say(10, ['connection', 9, 'down']), ['paused down 1'])
  const once = { troubles: 1, reason: 'down', rate: 10, troubled: 10, until: 11, accepted: null }
  t.strictSame(await stored(), once)
  t.strictSame(await say(12, ['connection', 9.9, 'other'], ['setup', 10, 'other']), [])
  t.strictSame(await stored(), once)
  t.strictSame(await say(12, ['connection', 11, 'down']), ['paused down 2'])
  t.match(await stored(), { troubles: 2, troubled: 12, until: 14 })
  t.strictSame(await say(15, ['setup', 14, 'refused']), ['paused refused 8'], 'the third in a row')
  t.strictSame(await say(30, ['setup', 29, 'refused', 60]), ['paused refused 60'], 'as the provider says')
  t.match(await stored(), { troubles: 4, reason: 'refused', until: 90 })
  t.strictSame(await timeline(), ['10 paused down', '15 paused refused'], 'each word once')
})

t.test('probes a sender that keeps requesting a second less often', async (t) => {
  const { say, stored } = aSender()
  const pauses: (number | null)[] = []
  for (const now of [100, 200, 300, 400, 500, 600]) {
    await say(now, ['connection', now - 1, 'HTTP 503', 1])
    pauses.push(((await stored()).until ?? 0) - now)
  }
  t.strictSame(pauses, [2, 4, 8, 16, 30, 30])
})

t.test('a longer existing pause stays', async (t) => {
  for (const [stands, wait, until, reason] of [
    [40, 39, 40, 'first'],
    [31, 1, 31, 'first'],
    [30, 5, 5, 'second'],
    [40, 40, 40, 'second'],
    [40, 50, 50, 'second'],
  ] as const) {
    const { say, stored, timeline } = aSender()
    await say(0, ['setup', -1, 'first', stands])
    // At the database's time, at which the first pause hasn't ended.
    const change = `paused second ${until}`
    t.strictSame(await say(0, ['setup', 0.001, 'second', wait]), [change])
    t.match(await stored(), { troubles: 2, troubled: 0, until, reason })
    t.equal((await timeline()).length, reason === 'first' ? 1 : 2)
  }
})

t.test('records the first failure after a pause with the same reason, once', async (t) => {
  const { say, stored, timeline } = aSender()
  t.strictSame(await say(0, ['slow', -1, 'words', 5]), ['slowed words 5'])
  t.match(await stored(), { troubles: 0, until: 5, reason: 'words', rate: 10 })
  t.strictSame(await say(6, ['setup', 5]), ['paused words 2'])
  t.strictSame(await say(9, ['setup', 8]), ['paused words 4'])
  t.strictSame(await timeline(), ['0 paused words', '6 paused words'])
})

t.test('"too fast" halves the rate, or pauses on request', async (t) => {
  const { say, stored, timeline } = aSender()
  t.strictSame(await say(0, ['slow', -1, 'fast']), ['slowed fast 0'])
  t.match(await stored(), { rate: 5, until: null, troubles: 0 })
  t.strictSame(await say(0.5, ['slow', 0.4, 'fast']), ['slowed fast 0'])
  t.match(await stored(), { rate: 5 }, 'within a second it counts once')
  t.strictSame(await say(10, ['slow', 9, 'wait', 20]), ['slowed wait 20'])
  t.strictSame(await say(11, ['slow', 9, 'shorter', 5]), ['slowed shorter 5'])
  t.match(await stored(), { rate: 5, until: 30, reason: 'wait' })
  t.strictSame(await timeline(), ['0 slowed fast', '10 paused wait'])
})

t.test('the first accepted send after a failure closes the circuit', async (t) => {
  const { say, stored, timeline } = aSender()
  t.strictSame(await say(0, ['accepted', -1]), [], 'nothing to recover from')
  t.match(await stored(), { accepted: null })
  await say(10, ['connection', 9, 'down', 60])
  t.strictSame(await say(20, ['accepted', 9], ['accepted', 10]), [])
  t.match(await stored(), { troubles: 1, until: 70 })
  t.strictSame(await say(30, ['accepted', 10.001]), ['recovered messages are accepted again 0'])
  const closed = { troubles: 0, reason: null, rate: 10, troubled: null, until: null, accepted: 30 }
  t.strictSame(await stored(), closed)
  t.strictSame(await say(31, ['connection', 30, 'down']), [], 'it began before that was known')
  t.strictSame(await stored(), closed)
  t.strictSame(await say(32, ['connection', 30.001, 'down']), ['paused down 1'])
  t.match(await stored(), { troubles: 1, accepted: 30 })
  t.strictSame(await timeline(), [
    ...['10 paused down', '30 recovered messages are accepted again'],
    '32 paused down',
  ])
})

t.test('an inconclusive probe lets the next one start immediately', async (t) => {
  const { sender, say, stored } = aSender()
  const probe = () => reserveSends(database, [{ sender, costs: [1, 1] }], 5)
  await say(0, ['setup', -1, 'down'])
  await stopClock(database, at(10))
  t.match(await probe(), [{ delays: [0], wait_seconds: 1 }])
  t.match(await stored(), { troubles: 1, until: 40 })
  t.match(await probe(), [{ delays: EMPTY, wait_seconds: 30 }], 'one at a time')
  t.strictSame(await say(11, ['answered', 0]), [])
  t.match(await stored(), { until: 40 }, 'it began before the trouble was known')
  t.strictSame(await say(12, ['answered', 10]), [])
  t.match(await stored(), { troubles: 1, until: null, reason: 'down', accepted: null })
  t.match(await probe(), [{ delays: [0], wait_seconds: 1 }])
  await say(13, ['setup', 12.5, 'closed', 60])
  await say(14, ['answered', 13.5])
  t.match(await stored(), { troubles: 2, until: 73 }, 'a longer pause stays')
  t.strictSame(await aSender().say(15, ['answered', 14]), [], 'nor does it change one without trouble')
})

t.test('a response only ends its own probe', async (t) => {
  for (const wait of [undefined, 5, 30, 60]) {
    const { say, stored } = aSender()
    await say(0, ['setup', -1, 'down'])
    const until = 10 + (wait ?? 4)
    await say(10, wait === undefined ? ['setup', 9] : ['setup', 9, 'closed', wait])
    // Released by another worker before the probe's response, and started after it.
    await say(11, ['answered', 10.5])
    t.match(await stored(), { until }, `a pause of ${wait ?? 4} s`)
  }
  for (const kind of ['slow', 'setup'] as const) {
    const { sender, say, stored } = aSender()
    await say(0, ['setup', -1, 'down'])
    await stopClock(database, at(10))
    await reserveSends(database, [{ sender, costs: [1] }], 5)
    await say(12, [kind, 10.2, 'wait', 29], ['answered', 10.1])
    t.match(await stored(), { until: 41 }, `${kind} in the same batch`)
  }
  const { sender, say, stored } = aSender()
  const probe = () => reserveSends(database, [{ sender, costs: [1] }], 5)
  await say(0, ['setup', -1, 'down'])
  for (const time of [10, 40]) {
    await stopClock(database, at(time))
    t.match(await probe(), [{ delays: [0] }])
  }
  await say(41, ['answered', 10.1])
  t.match(await stored(), { until: 70 }, 'a late answer of the probe before')
  await say(42, ['answered', 40])
  t.match(await stored(), { until: null }, 'of this one')
})

t.test('the latest send of each kind counts, failures before successes', async (t) => {
  const { say, stored, timeline } = aSender()
  const both = await say(
    10,
    ['connection', 7, 'older'],
    ['connection', 9, 'newest'],
    ['connection', 8, 'old'],
  )
  t.strictSame(both, ['paused newest 1'])
  t.strictSame(
    await say(20, ['accepted', 19], ['setup', 18, 'refused'], ['slow', 17, 'fast'], ['connection', 19]),
    ['slowed fast 0', 'paused refused 4'],
  )
  t.match(await stored(), { troubles: 2, until: 24, rate: 5, accepted: null })
  t.strictSame(await say(30, ['accepted', 11], ['accepted', 29], ['accepted', 12]), [
    'recovered messages are accepted again 0',
  ])
  t.strictSame(await timeline(), [
    ...['10 paused newest', '20 slowed fast', '20 paused refused'],
    '30 recovered messages are accepted again',
  ])
})

t.test('each of several senders has its own changes', async (t) => {
  await stopClock(database, at(0))
  const [one, other] = [aSender(), aSender()]
  const signalled = [
    { sender: other.sender, signals: [signalOf(['connection', -1, 'down'])] },
    { sender: one.sender, signals: [signalOf(['setup', -1, 'refused'])] },
  ]
  const changes = await database.transaction((tx) => applySignals(tx, signalled))
  t.strictSame(changes, [
    { kind: 'paused', words: 'down', seconds: 1, sender: other.sender.key },
    { kind: 'paused', words: 'refused', seconds: 2, sender: one.sender.key },
  ])
  t.strictSame([await one.timeline(), await other.timeline()], [['0 paused refused'], ['0 paused down']])
})

t.test("returns a sender's state, and failing senders by prefix", async (t) => {
  await stopClock(database, at(0))
  const untroubled = { now: at(0), wait_seconds: 0, probing: false, accepted_at: null, deferring: false }
  t.strictSame(await stateOfSender(database, 'smtp:never'), untroubled)
  const [down, paused, well] = [aSender('kind:'), aSender('kind:'), aSender('kind:')]
  await down.say(0, ['connection', -1])
  await paused.say(0, ['slow', -1, 'words', 60])
  await well.say(0, ['slow', -1])
  await aSender('other:').say(0, ['connection', -1])
  await stopClock(database, at(1))
  const probing = { ...untroubled, now: at(1), probing: true }
  const waiting = { ...untroubled, now: at(1), wait_seconds: 59 }
  t.strictSame(await stateOfSender(database, down.sender.key), probing)
  t.strictSame(await stateOfSender(database, paused.sender.key), waiting)
  const troubled = await failingSenders(database, 'kind:')
  t.strictSame(troubled.now, at(1))
  t.strictSame(Object.fromEntries(troubled.states), {
    [down.sender.key]: probing,
    [paused.sender.key]: waiting,
  })
})

t.test('six deferrals to three domains slow the sender down', async (t) => {
  const sender = { key: 'smtp:deferring', ceiling: 10 }
  const deferral = (message: number, key = '451 4.7.1 try again', domain = `d${message % 3}.example`) => ({
    kind: 'deferred' as const,
    began_at: at(message),
    deferral: { key, words: key, message: String(message), domains: [domain] },
  })
  const apply = (now: number, ...signals: SenderSignal[]) =>
    stopClock(database, at(now)).then(() =>
      database.transaction((tx) => applySignals(tx, [{ sender, signals }])),
    )
  const rate = async () => (await sendersByKeys(database, [sender.key])).rows.get(sender.key)?.rate
  const isDeferring = async () => (await stateOfSender(database, sender.key)).deferring
  const accepted = { kind: 'accepted' as const, began_at: at(0) }

  for (let message = 1; message <= 9; message++) await apply(10, deferral(1))
  for (let message = 1; message <= 9; message++) await apply(10, deferral(message, '451 one', 'd.example'))
  for (let message = 1; message <= 9; message++) await apply(10, deferral(message, `450 ${message}`))
  t.equal(await rate(), 10, 'not one message, not one domain, not different words')
  for (let message = 1; message <= 5; message++) await apply(20, deferral(message))
  t.equal(await isDeferring(), true)
  await apply(20, accepted)
  t.equal(await isDeferring(), false)
  for (let message = 1; message <= 5; message++) await apply(30, deferral(message))
  t.equal(await rate(), 10, 'an accepted recipient ends the row')
  await apply(30, deferral(6))
  t.equal(await rate(), 5)
  const kinds = async () =>
    (await senderEvents(database, 20)).flatMap((one) => (one.sender === sender.key ? [one.kind] : []))
  t.strictSame(await kinds(), ['slowed'])
  await apply(40, deferral(41))
  t.equal(await rate(), 2.5, 'it goes on, so it slows more')
  await apply(50, accepted)
  t.strictSame(await kinds(), ['recovered', 'slowed'])
  await apply(51, accepted)
  const { delays } = (await reserveSends(database, [{ sender, costs: [1] }], 5))[0] ?? {}
  t.strictSame(delays, [0])
  t.equal((await sendersByKeys(database, [sender.key])).rows.get(sender.key)?.slowed_at, null)
})

t.test("an accepted message doesn't end a slowdown after a 421", async (t) => {
  const sender = { key: 'smtp:both', ceiling: 10 }
  const slow = { kind: 'slow' as const, words: '421 4.7.0 too fast', began_at: at(60) }
  await stopClock(database, at(60))
  const deferral = (message: number): SenderSignal => ({
    ...{ kind: 'deferred', began_at: at(61) },
    deferral: { key: '451', words: '451', message: String(message), domains: [`d${message}.example`] },
  })
  const signals = [slow, ...[1, 2, 3, 4, 5, 6].map(deferral)]
  await database.transaction((tx) => applySignals(tx, [{ sender, signals }]))
  await database.transaction((tx) =>
    applySignals(tx, [{ sender, signals: [{ kind: 'accepted', began_at: at(62) }] }]),
  )
  t.ok((await sendersByKeys(database, [sender.key])).rows.get(sender.key)?.slowed_at)
})
