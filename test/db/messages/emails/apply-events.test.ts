/** Reports in any order, any number of times and in any transactions lead to the same state. */
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { Client } from 'pg'
import { sql } from 'slonik'
import { number, object } from 'yup'
import { lockEmails } from '../../../../db/messages/emails/apply-events.sql.ts'
import { applyEmailEvents } from '../../../../db/messages/emails/apply-events.ts'
import type { EmailEvent } from '../../../../db/messages/emails/events.sql.ts'
import { type EmailStatus, higherStatus, statusOfEvent } from '../../../../db/messages/emails/status.ts'
import type { Tx } from '../../../../db/postgres/pool.ts'
import { contactState, emailStatus, storeContact, storeEmails, storeTeam } from '../../../support/reports.ts'
import { lockWaits } from '../../../support/rows.ts'
import type { Service } from '../../../support/service.ts'
import { shareService } from '../../../support/shared-service.ts'
import t from '../../../support/tap.ts'
import { anEvent } from '../../../support/webhooks.ts'
import { until } from '../../../support/worker.ts'

const renewed = await shareService(t)

const START = Date.UTC(2026, 0, 1)
const NOW = new Date(START + 3_600_000)

/** An event before it belongs to a row: the email, the recipient, the kind and the time. */
type Draft = { email: number; to: string | null; what: (typeof HAPPENINGS)[number]; second: number }

const HAPPENINGS = [
  { kind: 'sent', effect: 'none' },
  { kind: 'delivered', effect: 'delivered' },
  { kind: 'opened', effect: 'none' },
  { kind: 'delayed', effect: 'none' },
  { kind: 'bounced', effect: 'none' },
  { kind: 'bounced', effect: 'soft' },
  { kind: 'bounced', effect: 'hard' },
  { kind: 'complained', effect: 'complaint' },
] as const

/** The emails of each run, with the first letters of their recipients. */
const RECIPIENTS = [['a'], ['a'], ['a'], ['a'], ['a'], ['a', 'b'], ['b']] as const

const weighted = (weights: readonly number[]) =>
  fc.oneof(...HAPPENINGS.map((what, nth) => ({ arbitrary: fc.constant(what), weight: weights[nth] ?? 1 })))

/** All kinds of events for all recipients. */
const medley = fc.array(
  fc.record({
    email: fc.nat(RECIPIENTS.length - 1),
    to: fc.constantFrom('a', 'a', 'A', 'b', 'foreign', null),
    what: weighted([2, 2, 2, 1, 1, 3, 1, 1]),
    second: fc.nat(12),
  }),
  { minLength: 12, maxLength: 24 },
)

/** Soft bounces of one contact with a delivery or two, which could depend on the order. */
const softRow = fc.array(
  fc.record({
    email: fc.nat(5),
    to: fc.constant('a'),
    what: weighted([0, 2, 0, 0, 0, 9, 0, 0]),
    second: fc.nat(12),
  }),
  { minLength: 5, maxLength: 11 },
)

const drafts: fc.Arbitrary<Draft[]> = fc.oneof(medley, softRow)

const runs = drafts.chain((events) =>
  fc.record({
    events: fc.constant(events),
    // Each event at least once, with repeats, in any order, each in one of four concurrent transactions.
    sequence: fc
      .tuple(
        fc.shuffledSubarray(events, { minLength: events.length, maxLength: events.length }),
        fc.shuffledSubarray(events),
      )
      .map(([all, again]) => [...all, ...again]),
    lanes: fc.array(fc.nat(3), { minLength: 48, maxLength: 48 }),
    batches: fc.integer({ min: 1, max: 12 }),
    before: fc.constantFrom('subscribed' as const, 'unsubscribed' as const),
  }),
)

type Run = typeof runs extends fc.Arbitrary<infer R> ? R : never

const keyOf = ({ to, what, second }: Draft): string => `${to}:${what.kind}:${what.effect}:${second}`

/** Returns the recipient that an event is about. Only recipients of the email count. */
function about({ email, to }: Draft): 'a' | 'b' | 'nobody' | undefined {
  const own: readonly string[] = RECIPIENTS[email] ?? []
  if (to === null) return own.length === 1 ? (own[0] as 'a' | 'b') : 'nobody'
  return own.includes(to.toLowerCase()) ? (to.toLowerCase() as 'a' | 'b') : undefined
}

/** Computes the expected status from the set of events. */
function expectedStatus(events: readonly Draft[], email: number): EmailStatus {
  const own = events.filter((event) => event.email === email && about(event) !== undefined)
  return own.reduce<EmailStatus>(
    (status, { what }) => higherStatus(status, statusOfEvent(what.kind)),
    'queued',
  )
}

/** Computes the expected status of a contact from the set of events. */
function expectedContact(events: readonly Draft[], letter: 'a' | 'b', before: string) {
  const own = new Map(
    events
      .filter((event) => about(event) === letter)
      .map((event) => [`${event.email}:${keyOf(event)}`, event]),
  )
  const all = [...own.values()]
  const has = (effect: string) => all.some(({ what }) => what.effect === effect)
  if (has('complaint')) return { status: 'complained', suppression: 'complained' }
  const inOrder = all
    .filter(({ what }) => what.effect === 'soft' || what.effect === 'delivered')
    // Within a second, deliveries come first.
    .toSorted((one, other) => one.second - other.second || (one.what.effect === 'delivered' ? -1 : 1))
  let row = 0
  for (const { what } of inOrder) row = what.effect === 'soft' ? row + 1 : 0
  if (has('hard') || row >= 5) return { status: 'bounced', suppression: 'bounced' }
  return { status: before, suppression: null }
}

const [COMPLAINED, HARD] = [HAPPENINGS[7], HAPPENINGS[6]]

/** Runs that end with two suppressed contacts, so that some do, whatever the random ones contain. */
const SUPPRESSING = (['subscribed', 'unsubscribed'] as const).flatMap((before) =>
  [1, 2, 3].map((batches) => {
    const events: Draft[] = [
      { email: 0, to: 'a', what: COMPLAINED, second: 1 },
      { email: 6, to: 'b', what: HARD, second: 2 },
    ]
    return [{ events, sequence: [...events, ...events], lanes: Array<number>(48).fill(0), batches, before }]
  }),
) as [Run][]

async function ingest(service: Service, events: readonly EmailEvent[], held?: Promise<unknown>) {
  return service.database.transaction(async (tx) => {
    await applyEmailEvents(tx, events, NOW)
    await held
  })
}

t.test('events end the same in any order, repetition and split', async (t) => {
  const service = await renewed()
  let suppressed = 0
  await fc.assert(
    fc.asyncProperty(runs, async ({ events, sequence, lanes, batches, before }) => {
      const team = await storeTeam(service)
      for (const letter of ['a', 'b']) await storeContact(service, team, `${letter}@example.org`, before)
      const ids = await storeEmails(
        service,
        team,
        RECIPIENTS.map((letters) => letters.map((letter) => `${letter}@Example.org`)),
      )
      const toEvent = (draft: Draft): EmailEvent => ({
        ...{ team_id: team, email_id: ids[draft.email] ?? '', event_key: keyOf(draft), ...draft.what },
        recipient: draft.to && `${draft.to}@example.ORG`,
        detail: '',
        occurred_at: new Date(START + draft.second * 1_000),
      })
      const inLanes = [0, 1, 2, 3].map((lane) => sequence.filter((_, index) => lanes[index] === lane))
      await Promise.all(
        inLanes.map(async (lane) => {
          for (let at = 0; at < lane.length; at += batches)
            await ingest(service, lane.slice(at, at + batches).map(toEvent))
        }),
      )
      for (const [index, id] of ids.entries()) {
        if ((await emailStatus(service, id)) !== expectedStatus(events, index)) return false
      }
      for (const letter of ['a', 'b'] as const) {
        const expected = expectedContact(events, letter, before)
        if (expected.suppression !== null) suppressed++
        const found = await contactState(service, team, `${letter}@example.org`)
        if (found.status !== expected.status || found.suppression !== expected.suppression) return false
      }
      return true
    }),
    { numRuns: 81, examples: SUPPRESSING },
  )
  t.ok(suppressed > 10, `the runs suppressed ${suppressed} contacts`)
})

const soft = (team: string, email: string, second: number): EmailEvent => ({
  team_id: team,
  email_id: email,
  event_key: `soft:${second}`,
  kind: 'bounced',
  effect: 'soft',
  recipient: 'a@example.org',
  occurred_at: new Date(START + second * 1_000),
  detail: '',
})
const delivery = (team: string, email: string, second: number): EmailEvent => ({
  ...soft(team, email, second),
  event_key: `delivered:${second}`,
  kind: 'delivered',
  effect: 'delivered',
})

t.test('concurrent soft bounces and deliveries see each other', async (t) => {
  const service = await renewed()
  for (const later of ['the soft bounce', 'the delivery']) {
    const team = await storeTeam(service)
    await storeContact(service, team, 'a@example.org')
    const [first = '', second = '', third = ''] = await storeEmails(service, team, [
      ['a@example.org'],
      ['a@example.org'],
      ['a@example.org'],
    ])
    await ingest(
      service,
      [1, 2, 3, 4].map((at) => soft(team, first, at)),
    )
    const pair = [soft(team, second, 6), delivery(team, third, 5)]
    if (later === 'the soft bounce') pair.reverse()
    const [one, other] = pair
    const held = Promise.withResolvers<void>()
    const earlier = ingest(service, one ? [one] : [], held.promise)
    await sleep(100)
    const following = ingest(service, other ? [other] : [])
    await sleep(100)
    held.resolve()
    await Promise.all([earlier, following])
    const state = await contactState(service, team, 'a@example.org')
    t.match(state, { status: 'subscribed', suppression: null }, later)
  }
})

t.test("the same emails in opposite order don't deadlock", async (t) => {
  const service = await renewed()
  const team = await storeTeam(service)
  const ids = await storeEmails(service, team, Array(200).fill(['a@example.org']))
  let begun = 0
  const apply = async (own: readonly string[], round: number) =>
    await service.database.transaction(async (tx) => {
      begun++
      const events = own.map((id) => ({ ...delivery(team, id, round), effect: 'none' as const }))
      await applyEmailEvents(tx, events, NOW)
    })
  for (let round = 0; round < 5; round++) {
    await Promise.all([
      apply(ids, round),
      apply(ids.toReversed(), round),
      apply(ids, round + 100),
      apply(ids.toReversed(), round + 100),
    ])
  }
  t.equal(begun, 20, 'no transaction had to be run again')
})

t.test('a lock that waited returns the committed state', async (t) => {
  const service = await renewed()
  const team = await storeTeam(service)
  const ids = await storeEmails(service, team, Array(3).fill(['a@example.org']))
  const refs = ids.map((email_id) => ({ team_id: team, email_id }))
  const other = new Client({ connectionString: service.url })
  await other.connect()
  t.teardown(() => other.end())
  await other.query('begin')
  await other.query('update email_states set size_kb = 9 where team_id = $1', [team])
  const waiting = service.database.transaction((tx) => lockEmails(tx, refs))
  await until('it waits', async () => (await lockWaits(service, 'for no key update')) > 0)
  await other.query('commit')
  const rows = await waiting
  const sizes = rows.map(({ email_id, size_kb }) => [email_id, size_kb])
  const expected = ids.toSorted().map((id) => [id, 9])
  t.same(sizes, expected)
})

t.test('delivery, open and click reports are HOT updates', async (t) => {
  const service = await renewed()
  const team = await storeTeam(service)
  const [email_id = ''] = await storeEmails(service, team, [['a@example.org']])
  const apply = (tx: Tx, kind: EmailEvent['kind']) =>
    applyEmailEvents(tx, [anEvent({ team_id: team, email_id, kind, occurred_at: NOW })], NOW)
  const row = object({ updates: number().defined(), hot: number().defined() })
  await service.database.transaction((tx) => apply(tx, 'sent'))
  const counted = await service.database.transaction(async (tx) => {
    const soFar = () =>
      tx.one(sql.type(row)`
        select n_tup_upd as updates, n_tup_hot_upd as hot from pg_stat_xact_user_tables where relname = 'email_states'`)
    const before = await soFar()
    for (const kind of ['delivered', 'opened', 'clicked'] as const) await apply(tx, kind)
    const after = await soFar()
    return { updates: after.updates - before.updates, hot: after.hot - before.hot }
  })
  t.strictSame(counted, { updates: 3, hot: 3 })
})
