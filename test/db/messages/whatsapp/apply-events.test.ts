/** The effect of events on WhatsApp messages. event-order.test.ts tests that order doesn't matter. */
import { sql } from 'slonik'
import { WHATSAPP } from '../../../../db/channels/whatsapp.sql.ts'
import { deliveryState } from '../../../../db/delivery/requeue.sql.ts'
import { lockMessages } from '../../../../db/messages/whatsapp/apply-events.sql.ts'
import {
  type AppliedEvent,
  applyReportedWhatsapp,
  applyWhatsappEvents,
  type ReportedStatus,
} from '../../../../db/messages/whatsapp/apply-events.ts'
import { applyReportedTemplates } from '../../../../db/messages/whatsapp/apply-template-events.ts'
import { eventsOfMessage, storeWhatsappEvents } from '../../../../db/messages/whatsapp/events.sql.ts'
import type { Tx } from '../../../../db/postgres/pool.ts'
import { hold } from '../../../support/held.ts'
import { ageByADay, lockWaits } from '../../../support/rows.ts'
import { world } from '../../../support/service.ts'
import { statementsOf } from '../../../support/statement-count.ts'
import t from '../../../support/tap.ts'
import {
  aMessage,
  aTemplate,
  makeTemplate,
  numbers,
  rowsOf,
  sendWhatsapp,
  setTaken,
  templateOf,
} from '../../../support/whatsapp.ts'
import { until } from '../../../support/worker.ts'

const { service, database, team } = await world(t)
const template = await makeTemplate(service, team.id)
const UNKNOWN_ID = '0190a000-0000-7000-8000-000000000000'

const messages = (count: number) => sendWhatsapp(service, team, template.id, { to: numbers(count) })

const reported = (id: string, status: ReportedStatus['status'], changes: Partial<ReportedStatus> = {}) => ({
  ref: { team_id: team.id, id },
  status,
  occurred_at: new Date(1_750_000_000_000),
  detail: '',
  event_key: `wamid.${id}:${status}`,
  provider_message_id: `wamid.${id}`,
  number: null,
  ...changes,
})

const apply = async (events: readonly ReportedStatus[], now = new Date()) =>
  await database.transaction((tx) => applyReportedWhatsapp(tx, events, now))

const stateOf = async (id: string) => (await rowsOf(service, team.id)).find((row) => row.id === id)

t.test('queued → sent → delivered → read, and never back', async (t) => {
  const [id = ''] = await messages(1)
  for (const [status, then] of [
    ['sent', 'sent'],
    ['delivered', 'delivered'],
    ['sent', 'delivered'],
    ['failed', 'delivered'],
    ['read', 'read'],
    ['delivered', 'read'],
  ] as const) {
    await apply([reported(id, status)])
    t.equal((await stateOf(id))?.status, then)
  }
  const kinds = (await eventsOfMessage(database, team.id, id)).map(({ kind }) => kind)
  t.same(kinds.sort(), ['delivered', 'failed', 'read', 'sent'], 'every event is kept, repeats fall away')
})

t.test('sorts the timeline by time, then by status', async (t) => {
  const [id = ''] = await messages(1)
  const second = 1_750_000_000_000
  await storeWhatsappEvents(database, [
    {
      team_id: team.id,
      message_id: id,
      event_key: 'attempt',
      kind: 'accepted',
      occurred_at: new Date(second + 400),
      detail: '',
    },
  ])
  for (const status of ['read', 'sent', 'delivered'] as const) await apply([reported(id, status)])
  await apply([
    reported(id, 'delivered', { occurred_at: new Date(second + 60_000), event_key: 'a later one' }),
  ])
  const kinds = (await eventsOfMessage(database, team.id, id)).map(({ kind }) => kind)
  t.strictSame(kinds, ['accepted', 'sent', 'delivered', 'read', 'delivered'])
})

t.test('read implies delivered, and a failure after sent is failed', async (t) => {
  const [one = '', other = ''] = await messages(2)
  await apply([
    reported(one, 'read'),
    reported(other, 'failed', { detail: '131026 Undeliverable' }),
    reported(other, 'sent'),
  ])
  t.equal((await stateOf(one))?.status, 'read')
  t.equal((await stateOf(other))?.status, 'failed')
})

t.test("a report with the provider's ID proves acceptance", async (t) => {
  const [id = ''] = await messages(1)
  await apply([reported(id, 'sent')])
  t.match(await stateOf(id), { provider_message_id: `wamid.${id}`, accepted_at: /Z$/ })
  await apply([reported(id, 'delivered', { provider_message_id: 'wamid.other' })])
  t.equal((await stateOf(id))?.provider_message_id, `wamid.${id}`, 'what was stored first stays')
})

t.test("finds rows by the provider's ID, ignoring unknown ones", async (t) => {
  const [id = ''] = await messages(1)
  await apply([reported(id, 'sent')])
  const results = await apply([
    reported(id, 'read', { ref: { provider_message_id: `wamid.${id}` } }),
    reported(UNKNOWN_ID, 'read'),
    reported(id, 'read', { ref: { provider_message_id: 'wamid.nobody' }, event_key: 'x' }),
    reported(id, 'read', { ref: { team_id: UNKNOWN_ID, id }, event_key: 'y' }),
  ])
  t.equal(results.map(({ kind }) => kind).join(), 'applied,unknown,ignored,unknown')
  t.equal((await stateOf(id))?.status, 'read')
  t.strictSame(await apply([reported(UNKNOWN_ID, 'read')]), [{ kind: 'unknown' }], 'nor beside no other')
  t.strictSame(await apply([]), [])
  t.strictSame(await database.transaction((tx) => applyWhatsappEvents(tx, [])), [])
})

t.test("locks batches in ID order, so they can't deadlock", async (t) => {
  const [one = '', two = ''] = (await messages(2)).sort()
  const lock = (tx: Tx) => lockMessages(tx, [{ team_id: team.id, message_id: one }])
  const commit = await hold(t, database, lock)
  const applied = apply([reported(one, 'held'), reported(two, 'sent')])
  await until('it waits for the first', async () => (await lockWaits(service)) === 1)
  const free = await database.any(sql.unsafe`
    select from whatsapp_messages where id = ${two} for update skip locked`)
  t.equal(free.length, 1, 'the second is not locked yet')
  await commit()
  t.equal((await applied).map(({ kind }) => kind).join(), 'applied,applied')
})

t.test('the earliest report sets the acceptance time', async (t) => {
  const [id = '', unnamed = ''] = await messages(2)
  const at = (seconds: number, provider_message_id: string | null = null) => ({
    ...{ occurred_at: new Date(1_750_000_000_000 + seconds * 1_000), event_key: `at ${seconds}` },
    provider_message_id,
  })
  await apply([
    reported(id, 'delivered', at(2, 'wamid.first')),
    reported(id, 'sent', at(1, 'wamid.second')),
    reported(id, 'read', at(3, 'wamid.third')),
    reported(unnamed, 'sent', at(1)),
  ])
  t.match(await stateOf(id), {
    accepted_at: new Date(1_750_000_001_000).toISOString(),
    provider_message_id: 'wamid.first',
  })
  t.match(await stateOf(unnamed), { status: 'sent', accepted_at: null, provider_message_id: null })
})

t.test("resends a returned message, unless the failure is another attempt's", async (t) => {
  const ids = await messages(7)
  const [fresh = '', lost = '', taken = '', nameless = '', other = '', sent = '', failed = ''] = ids
  const now = new Date()
  const accept = (message_id: string, provider_message_id: string | null, event_key = 'attempt') => ({
    ...{ team_id: team.id, message_id, kind: 'accepted' as const, provider_message_id },
    ...{ event_key, occurred_at: now, detail: '' },
  })
  await database.transaction((tx) =>
    applyWhatsappEvents(tx, [
      ...[accept(taken, `wamid.${taken}`), accept(nameless, null)],
      ...[accept(other, 'wamid.later'), accept(sent, `wamid.${sent}`)],
    ]),
  )
  await apply([reported(sent, 'sent'), reported(failed, 'failed', { provider_message_id: null })])
  const ago = (seconds: number) => ({ occurred_at: new Date(now.getTime() - seconds * 1_000) })
  const again = (message_id: string) => ({
    kind: 'applied',
    again: { number: null, parts: false, team_id: team.id, message_id, seconds: 0 },
  })
  const untaken = { status: 'queued', accepted_at: null, provider_message_id: null }
  const cases: [id: string, seconds: number, result: object, row?: object][] = [
    [UNKNOWN_ID, 60, { kind: 'unknown' }],
    [fresh, 1, { kind: 'unknown' }, untaken],
    [lost, 30, { kind: 'applied' }, untaken],
    [taken, 1, again(taken), untaken],
    [nameless, 1, again(nameless), untaken],
    [other, 1, { kind: 'applied' }, { status: 'queued', provider_message_id: 'wamid.later' }],
    [sent, 1, again(sent), { status: 'sent', accepted_at: null, provider_message_id: null }],
    [failed, 1, { kind: 'applied' }, { status: 'failed', accepted_at: null }],
  ]
  const held = (id: string, seconds: number) => reported(id, 'held', ago(seconds))
  const results = await apply(
    cases.map(([id, seconds]) => held(id, seconds)),
    now,
  )
  for (const [index, [id, , result, row]] of cases.entries()) {
    t.strictSame(results[index], result, `result ${index}`)
    if (row) t.match(await stateOf(id), row, `row ${index}`)
    const isStored = (await eventsOfMessage(database, team.id, id)).some(({ kind }) => kind === 'held')
    t.equal(isStored, results[index]?.kind === 'applied', `event ${index}`)
  }
  await database.transaction((tx) => applyWhatsappEvents(tx, [accept(nameless, null, 'next attempt')]))
  t.strictSame(await apply([held(nameless, 1)], now), [{ kind: 'applied' }], 'a repeat of the report')
  t.match(await stateOf(nameless), { status: 'queued', accepted_at: /Z$/ }, 'is no reason to send again')
})

const isWaiting = async (id: string): Promise<boolean> =>
  (await deliveryState(database, WHATSAPP, { team_id: team.id, id }))?.unfinished ?? false

t.test('a temporary failure is retried, and the message stays sent', async (t) => {
  const orders = [
    [['sent', 'deferred']],
    [['deferred', 'sent']],
    [['sent'], ['deferred']],
    [['deferred'], ['sent']],
  ] as const
  for (const batches of orders) {
    const [id = ''] = await messages(1)
    await setTaken(service, id)
    for (const batch of batches) await apply(batch.map((status) => reported(id, status)))
    t.match(await stateOf(id), { status: 'sent', accepted_at: null, provider_message_id: null })
    t.ok(await isWaiting(id), JSON.stringify(batches))
    await apply([reported(id, 'deferred', { event_key: 'another report of it' }), reported(id, 'sent')])
    t.ok(await isWaiting(id))
    await apply([reported(id, 'sent', { event_key: 'later', provider_message_id: 'wamid.later' })])
    t.notOk(await isWaiting(id), 'its second attempt was sent')
    await apply([reported(id, 'deferred', { event_key: 'late' }), reported(id, 'failed', { event_key: 'x' })])
    t.notOk(await isWaiting(id), 'of its first attempt')
    t.match(await stateOf(id), { status: 'sent', provider_message_id: 'wamid.later' })
  }
})

t.test('a delivery report ends the waiting', async (t) => {
  const [one = '', other = ''] = await messages(2)
  for (const id of [one, other]) await setTaken(service, id)
  await apply([reported(one, 'deferred'), reported(other, 'read')])
  t.ok(await isWaiting(one))
  await apply([reported(one, 'delivered'), reported(other, 'deferred')])
  t.match([await stateOf(one), await stateOf(other)], [{ status: 'delivered' }, { status: 'read' }])
  t.same([await isWaiting(one), await isWaiting(other)], [false, false])
})

t.test('pauses after late failures grow like those after responses', async (t) => {
  const [id = ''] = await messages(1)
  const seconds: number[] = []
  for (let attempt = 1; attempt <= 4; attempt++) {
    await setTaken(service, id)
    const of = { provider_message_id: `wamid.${attempt}`, event_key: `${attempt}`, occurred_at: new Date() }
    const [result] = await apply([reported(id, 'deferred', of)])
    seconds.push(result?.kind === 'applied' ? (result.again?.seconds ?? -1) : -1)
  }
  for (const [index, least] of [2, 4, 8, 16].entries()) {
    t.ok((seconds[index] ?? 0) >= least && (seconds[index] ?? 0) <= 2 * least, seconds.join())
  }
})

t.test('a message that was deferred for a day fails', async (t) => {
  const [id = ''] = await messages(1)
  await ageByADay(service, id)
  const at = (hours: number) => new Date(Date.now() - hours * 3_600_000)
  const of = (attempt: number, hours: number): Partial<ReportedStatus> => ({
    ...{ provider_message_id: `wamid.${attempt}`, event_key: `${attempt}`, occurred_at: at(hours) },
  })
  await database.query(sql.unsafe`
    update whatsapp_messages set created_at = created_at - interval '2 hours' where id = ${id}`)
  await setTaken(service, id)
  await apply([reported(id, 'deferred', of(1, 24.5))])
  t.ok(await isWaiting(id))
  await setTaken(service, id)
  await apply([reported(id, 'deferred', { ...of(2, 0), code: '131000' })])
  t.notOk(await isWaiting(id))
  t.match(await stateOf(id), { status: 'failed' })
  t.match((await eventsOfMessage(database, team.id, id)).at(-1), { kind: 'failed', code: '131000' })
})

t.test('a status of another number changes nothing', async (t) => {
  await database.query(sql.unsafe`
    insert into whatsapp_numbers (name, phone_number_id, created_at) values ('default', '100', now())`)
  t.teardown(() => database.query(sql.unsafe`delete from whatsapp_numbers`))
  const [id = ''] = await messages(1)
  const results = await apply([
    reported(id, 'read', { number: '200' }),
    reported(UNKNOWN_ID, 'read', { number: '200' }),
    reported(UNKNOWN_ID, 'read', { number: '100' }),
    reported(id, 'sent', { number: '100' }),
  ])
  t.equal(results.map(({ kind }) => kind).join(), 'ignored,ignored,unknown,applied')
  t.match(await apply([reported(UNKNOWN_ID, 'read', { number: '200' })]), [{ kind: 'ignored' }])
  t.match(await stateOf(id), { status: 'sent' })
})

t.test('keeps the pricing of the last priced status', async (t) => {
  const [id = ''] = await messages(1)
  const pricing = (category: string) => ({ category, type: 'regular', billable: true })
  const at = (seconds: number) => ({ occurred_at: new Date(1_750_000_000_000 + seconds * 1_000) })
  await apply([reported(id, 'delivered', { ...at(5), pricing: pricing('utility') })])
  await apply([
    reported(id, 'sent', { ...at(1), pricing: pricing('marketing') }),
    reported(id, 'read', at(9)),
  ])
  t.match(await stateOf(id), { pricing: pricing('utility') })
})

t.test('many events need as many statements as one', async (t) => {
  const ids = await messages(3)
  const cost = (...events: ReportedStatus[]) =>
    statementsOf(database, (tx) => applyReportedWhatsapp(tx, events, new Date()))
  const costOfTries = (kind: AppliedEvent['kind'], of = ids) => {
    const known = { team_id: team.id, kind, event_key: `try:${kind}`, occurred_at: new Date(), detail: '' }
    const events = of.map((message_id) => ({ ...known, message_id }))
    return statementsOf(database, (tx) => applyWhatsappEvents(tx, events))
  }
  const each = (status: ReportedStatus['status'], of = ids) => of.map((id) => reported(id, status))
  t.equal(await costOfTries('deferred', []), 0)
  t.equal(await costOfTries('deferred'), 2, 'locks, stores')
  t.equal(await costOfTries('accepted'), 3, 'locks, stores, marks as taken')
  t.equal(await cost(), 0)
  t.equal(await cost(reported('', 'read', { ref: { provider_message_id: 'wamid.nobody' } })), 1, 'looks up')
  t.equal(await cost(reported(UNKNOWN_ID, 'read')), 1, 'locks')
  t.equal(await cost(reported(UNKNOWN_ID, 'held')), 2, 'locks, looks at what the others have left')
  t.equal(await cost(...each('held', ids.slice(0, 1))), 4, 'locks, looks, stores, gives back')
  t.equal(await cost(...each('deferred', ids.slice(0, 1))), 5, 'and reads how often it was deferred')
  t.equal(await cost(...each('held')), 4)
  t.equal(await cost(...each('held')), 3, 'a repeat gives nothing back')
  t.equal(await cost(...each('sent')), 3, 'of an earlier attempt: locks, stores, marks as sent')
  const others = await messages(3)
  t.equal(await cost(...each('sent', others.slice(0, 1))), 4, 'locks, stores, marks as taken, lifts')
  t.equal(await cost(...each('sent', others)), 4)
  t.equal(await cost(...each('sent', others)), 2, 'a repeat lifts nothing')
  const blaming = each('failed', others).map((event) => ({ ...event, template: { status: null } }))
  t.equal(await cost(...blaming), 5, 'locks, stores, marks as taken, lifts, notes on the template')
})

t.test('records failures caused by the template, unless newer events exist', async (t) => {
  const definition = aTemplate()
  const { id: template_id } = await makeTemplate(service, team.id, definition)
  // From the current time, because earlier tests may have been slow on a busy machine.
  const begun = Math.floor(Date.now() / 1_000) * 1_000
  const ids = await sendWhatsapp(service, team, template_id, { to: numbers(3) })
  const fail = (row: number, status: 'paused' | 'disabled' | null, seconds: number): ReportedStatus =>
    reported(ids[row] ?? '', 'failed', {
      detail: `${status} at ${seconds}`,
      template: { status },
      occurred_at: new Date(begun + seconds * 1_000),
      event_key: `${row}:${status}:${seconds}`,
    })
  const template = () => templateOf(service, template_id)
  await apply([fail(0, null, -600), fail(1, 'disabled', -600)])
  t.same(await template(), { status: 'approved', fault: null }, 'older than the template’s state')
  await apply([fail(0, null, 10)])
  t.same(await template(), { status: 'approved', fault: 'null at 10' }, 'a fault is no state')
  await apply([fail(0, 'disabled', 20), fail(1, 'paused', 30), fail(2, null, 31)])
  t.same(await template(), { status: 'paused', fault: 'paused at 30' }, 'the latest state counts')
  const send = async () =>
    (await service.call('POST', '/v1/whatsapp/messages', { key: team.key, body: aMessage(template_id) })).body
  t.equal((await send()).error.code, 'template_disabled')
  await apply([fail(2, 'disabled', 30)])
  t.match(await template(), { status: 'disabled' }, 'of one second the most restrictive')
  const { name, language } = definition as { name: string; language: string }
  const occurred_at = new Date(begun + 60_000)
  await database.transaction(
    async (tx) =>
      await applyReportedTemplates(
        tx,
        [{ name, language, account_id: null, number: null, status: 'approved', occurred_at }],
        new Date(),
      ),
  )
  await apply([fail(1, 'paused', 30), fail(2, 'disabled', 59)])
  t.match(await template(), { status: 'approved' }, 'repeats and late comers change nothing')
})
