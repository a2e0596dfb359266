/**
 * Opt-outs from marketing: their sources, their effect, and their events. Real hook, real queue, real worker.
 */
import { sql } from 'slonik'
import { optOutsOfTeam } from '../../../db/messages/whatsapp/opt-outs.sql.ts'
import { applyReportedOptOuts, changeOptOuts } from '../../../db/messages/whatsapp/opt-outs.ts'
import { showMessage } from '../../../db/messages/whatsapp/show.ts'
import { whatsappChannel } from '../../../workers/channels/deliver-whatsapp.ts'
import { statusOf, statusWebhook } from '../../sandbox/whatsapp.ts'
import { adminCli } from '../../support/admin.ts'
import { startReceiver } from '../../support/receiver.ts'
import { byCli, type Service } from '../../support/service.ts'
import t from '../../support/tap.ts'
import { aTemplate, type Json, postUpdates } from '../../support/whatsapp.ts'
import { startDeliveries } from '../../support/whatsapp-delivery.ts'
import { giveNumber, makeDefaultNumber, makeNumber } from '../../support/whatsapp-numbers.ts'
import { until } from '../../support/worker.ts'

const { service, begin } = await startDeliveries(t)
const cli = adminCli({ DATABASE_URL: service.url, WEBHOOK_ALLOW: '127.0.0.0/8' })
const NUMBER = '+15555550101'
const marketing = aTemplate({}, { category: 'MARKETING' })

async function post(service: Service, field: string, value: Json): Promise<void> {
  const metadata = { display_phone_number: '15555550100', phone_number_id: '100' }
  const changes = [{ field, value: { metadata, ...value } }]
  const updates = { object: 'whatsapp_business_account', entry: [{ id: '1', changes }] }
  t.equal((await postUpdates(service, updates)).status, 200)
}

const seconds = (ago = 0): string => String(Math.floor(Date.now() / 1_000) - ago)

/** Builds the update for a recipient's STOP message. */
const says = (changes: Json = {}): Json => ({
  messages: [
    {
      id: 'wamid.in',
      from: NUMBER.slice(1),
      timestamp: seconds(),
      type: 'text',
      text: { body: ' Stop ' },
      ...changes,
    },
  ],
})
const START = { text: { body: 'START' } }
const wishes = (value: 'stop' | 'resume', ago = 0): Json => ({
  user_preferences: [
    { wa_id: NUMBER.slice(1), category: 'marketing_messages', value, timestamp: Number(seconds(ago)) },
  ],
})

const outs = async (team: string) =>
  (await optOutsOfTeam(service.database, team)).map(({ to, by }) => `${to} ${by}`)

t.test('texts, buttons, preferences and failures opt out', async (t) => {
  const { team, oneTaken, cloud, work } = await begin(t, { definition: marketing })
  await work()
  await oneTaken()
  const [message] = cloud.messages()
  if (!message) throw new Error('no message')
  const is = (what: readonly string[]) =>
    until(what.join() || 'no opt-out', async () => (await outs(team.id)).join() === what.join())
  await post(service, 'messages', says())
  await is([`${NUMBER} text`])
  await post(service, 'user_preferences', wishes('stop', 3_600))
  await post(service, 'user_preferences', wishes('resume', -1))
  await is([])
  const button = { type: 'button', text: undefined, button: { payload: 'UNSUBSCRIBE', text: 'No more' } }
  await post(service, 'messages', says({ ...button, timestamp: seconds(-2), context: { id: message.id } }))
  await is([`${NUMBER} button`])
  await post(service, 'messages', says({ text: { body: 'start' }, timestamp: seconds(-3) }))
  await is([])
  await post(service, 'user_preferences', wishes('stop', -4))
  await is([`${NUMBER} user_preferences`])
  await post(service, 'user_preferences', wishes('resume', -4))
  await post(service, 'user_preferences', wishes('resume', -5))
  await is([])
  const failed = statusOf(message, { status: 'failed', errors: [{ code: 131050, title: 'Opted out' }] })
  await cloud.post(
    statusWebhook(cloud.delivery.number?.phone_number_id ?? '', [{ ...failed, timestamp: seconds(-6) }]),
  )
  await is([`${NUMBER} 131050`])
})

t.test('after an opt-out only marketing isn’t sent', async (t) => {
  const { team, one, oneTaken, send, cloud, work, row, kinds } = await begin(t, { definition: marketing })
  const waiting = await one()
  t.match(await cli.json(['whatsapp', 'opt-out', team.id, NUMBER]), { to: NUMBER, at: /Z$/, by: 'cli' })
  t.match(await cli.json(['whatsapp', 'opt-outs', team.id]), [{ to: NUMBER, by: 'cli' }])
  const later = await one()
  const [other = ''] = await send({ to: ['+15555550102'] })
  await work()
  await until('the other is sent', async () => (await row(other)).provider_message_id !== null)
  for (const id of [waiting, later]) {
    await until('it has failed', async () => (await row(id)).status === 'failed')
    const shown = await showMessage({ tx: service.database, now: service.deps.clock() }, team.id, id)
    t.match(shown.events.at(-1), { kind: 'failed', detail: 'the recipient opted out of marketing' })
    t.strictSame(await kinds(id), ['failed'])
  }
  t.equal(cloud.messages().length, 1)
  t.same(await cli.json(['whatsapp', 'opt-in', team.id, NUMBER]), { to: NUMBER, opted_out: false })
  await oneTaken()
  t.equal(cloud.messages().length, 2)
})

t.test('an opt-out stops no message of another category', async (t) => {
  const { team, one, cloud, work } = await begin(t)
  await post(service, 'user_preferences', wishes('stop'))
  const { optOutManually } = await import('../../../db/messages/whatsapp/opt-outs.ts')
  await optOutManually(byCli(service.database), team.id, NUMBER)
  await one()
  await work()
  await until('it is sent', () => cloud.messages().length === 1)
})

t.test('an opt-out stops a message already read', async (t) => {
  const { team, one, cloud } = await begin(t, { definition: marketing })
  const message_id = await one()
  const { database, deps } = service
  const { secrets, log } = deps
  const channel = whatsappChannel({ database, whatsapp: cloud.delivery, secrets, log })
  const job = { data: { team_id: team.id, message_id } } as Parameters<typeof channel.read>[0][number]
  const outgoing = (await channel.read([job])).get(job)
  await cli.json(['whatsapp', 'opt-out', team.id, NUMBER])
  const answer = await outgoing?.send(new AbortController().signal)
  t.match(answer, { outcome: { kind: 'refused', detail: 'the recipient opted out of marketing' } })
  t.equal(cloud.messages().length, 0)
})

t.test('the latest message counts, and each change sends one webhook', async (t) => {
  const { team, work } = await begin(t)
  const receiver = await startReceiver(t)
  await cli.json(['webhook', 'add', team.id, '--url', receiver.url, '--types', '*'])
  const at = (second: number) => new Date(1_790_000_000_000 + second * 1_000)
  for (const [is_out, second, then] of [
    [false, 1, false],
    [true, 10, true],
    [true, 20, true],
    [false, 15, true],
    [false, 20, true],
    [false, 30, false],
    [true, 29, false],
    [true, 30, true],
  ] as const) {
    const change = { team_id: team.id, recipient: NUMBER, is_out, at: at(second), by: 'text' }
    await service.database.transaction((tx) => changeOptOuts(tx, [change]))
    t.equal((await outs(team.id)).length === 1, then, `${is_out ? 'stop' : 'start'} at ${second}`)
  }
  await work()
  await until('the changes are sent', () => receiver.received.length >= 3)
  const sent = receiver.received.map(({ body: { type, data } }) => ({ type, data }))
  const about = (second: number) => ({ to: NUMBER, at: at(second).toISOString(), by: 'text' })
  t.strictSame(
    sent.sort(
      (one, other) =>
        String(one.data.at).localeCompare(String(other.data.at)) || (one.type < other.type ? -1 : 1),
    ),
    [
      { type: 'whatsapp.opted_out', data: about(10) },
      { type: 'whatsapp.opted_in', data: about(30) },
      { type: 'whatsapp.opted_out', data: about(30) },
    ],
  )
})

t.test('opt-outs count for the team replied to, or recent senders', async (t) => {
  const { database } = service
  const recipient = '+15555550177'
  const wrote = async (days: number) => {
    const { team, one } = await begin(t)
    const id = await one({ to: [recipient] })
    await database.query(sql.unsafe`
      update whatsapp_messages set provider_message_id = ${`wamid.${id}`},
        accepted_at = now() - make_interval(days => ${days}) where id = ${id}`)
    return { id: team.id, wamid: `wamid.${id}` }
  }
  const teams = [await wrote(1), await wrote(29), await wrote(31)]
  const stop = async (changes: { reply_to?: string; number?: string; from?: string }) => {
    await database.query(sql.unsafe`delete from whatsapp_opt_outs`)
    const { reply_to = null, number = null, from = recipient.slice(1) } = changes
    const event = { number, from, reply_to, is_out: true, by: 'text' as const, occurred_at: new Date() }
    const results = await database.transaction((tx) => applyReportedOptOuts(tx, [event], new Date()))
    const found = await Promise.all(teams.map(async ({ id }) => (await outs(id)).length))
    return `${results[0]?.kind} ${found.join('')}`
  }
  t.equal(await stop({ reply_to: teams[0]?.wamid ?? '' }), 'applied 100')
  t.equal(await stop({ reply_to: teams[2]?.wamid ?? '' }), 'applied 001')
  t.equal(await stop({}), 'applied 110')
  const number = { name: 'optouts', phone_number_id: '7001', account_id: '7000', token: 'a-token' }
  await makeNumber(service, number)
  await makeDefaultNumber(service, { phone_number_id: '100', account_id: null })
  t.teardown(async () => {
    await database.query(sql.unsafe`update teams set whatsapp_number = null`)
    await database.query(sql.unsafe`delete from whatsapp_numbers`)
  })
  const stranger = { number: '7001', from: '15555550178' }
  t.equal(await stop({ number: '7001' }), 'ignored 000', 'no team wrote from it')
  await giveNumber(service, teams[2]?.id ?? '', 'optouts')
  t.equal(await stop(stranger), 'applied 001', 'its only team')
  await giveNumber(service, teams[1]?.id ?? '', 'optouts')
  t.equal(await stop(stranger), 'ignored 000', 'two teams have it')
})

t.test('an opt-out counts for both forms of a number', async (t) => {
  const { team, send, row, work } = await begin(t, { definition: marketing })
  const { optOutManually } = await import('../../../db/messages/whatsapp/opt-outs.ts')
  await optOutManually(byCli(service.database), team.id, '+551187654321')
  await work()
  const [id = ''] = await send({ to: ['+5511987654321'] })
  await until('it has failed', async () => (await row(id)).status === 'failed')
})

t.test("a start word ends an erased number's opt-out", async (t) => {
  // The ID of an erased message is deleted, so only the number's only team can be meant.
  const { service, begin } = await startDeliveries(t)
  const cli = adminCli({ DATABASE_URL: service.url })
  const { team, one, cloud, row, work } = await begin(t, { definition: marketing })
  await work()
  for (const start of [
    () => cli.json(['whatsapp', 'opt-in', team.id, NUMBER]),
    // Its time in seconds must be after the erasure.
    () => post(service, 'messages', says({ ...START, timestamp: seconds(-1) })),
  ]) {
    await cli.json(['whatsapp', 'opt-out', team.id, NUMBER])
    t.match(await cli.json(['contact', 'erase', team.id, NUMBER]), { whatsapp_opt_outs: 1 })
    const stopped = await one()
    await until('it has failed', async () => (await row(stopped)).status === 'failed')
    await start()
    await until('marketing is sent again', async () => {
      const id = await one()
      await until(
        'it is over',
        async () => (await row(id)).status === 'failed' || (await row(id)).provider_message_id !== null,
      )
      return (await row(id)).status !== 'failed'
    })
  }
  t.ok(cloud.messages().length >= 2)
})
