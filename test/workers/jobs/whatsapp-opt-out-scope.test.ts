/** Tests the teams and recipients of opt-outs from marketing. */
import { sql } from 'slonik'
import { applyReportedWhatsapp } from '../../../db/messages/whatsapp/apply-events.ts'
import { optOutsOfTeam } from '../../../db/messages/whatsapp/opt-outs.sql.ts'
import { applyReportedOptOuts, changeOptOuts } from '../../../db/messages/whatsapp/opt-outs.ts'
import { countRow } from '../../../db/postgres/rows.ts'
import { adminCli } from '../../support/admin.ts'
import { usedBy } from '../../support/rows.ts'
import t from '../../support/tap.ts'
import { aTemplate, postUpdates, setTaken } from '../../support/whatsapp.ts'
import { startDeliveries } from '../../support/whatsapp-delivery.ts'
import { giveNumber, makeDefaultNumber, makeNumber } from '../../support/whatsapp-numbers.ts'
import { startWorker, until } from '../../support/worker.ts'

const { service, begin } = await startDeliveries(t)
const { database } = service
const cli = adminCli({ DATABASE_URL: service.url })

const outs = async (team: string) =>
  (await optOutsOfTeam(database, team)).map(({ to, by }) => `${to} ${by}`).join()

const at = (second: number) => new Date(1_790_000_000_000 + second * 1_000)

type Reported = Parameters<typeof applyReportedOptOuts>[1][number]
const report = (changes: Partial<Reported>) =>
  database.transaction((tx) =>
    applyReportedOptOuts(
      tx,
      [
        {
          ...{ number: null, from: '15555550101', reply_to: null, is_out: true, by: 'text' },
          ...{ occurred_at: new Date(), ...changes },
        },
      ],
      new Date(),
    ),
  )

t.test('a stop word counts for both forms of a number', async (t) => {
  const { team, one } = await begin(t)
  await setTaken(service, await one({ to: ['+5511987654321'] }))
  await report({ from: '551187654321' })
  t.equal(await outs(team.id), '+5511987654321 text')
  await report({ from: '551187654321', is_out: false, occurred_at: new Date(Date.now() + 1_000) })
  t.equal(await outs(team.id), '')
})

t.test('an opt-in ends the opt-out of either form', async (t) => {
  const { team } = await begin(t)
  const change = { team_id: team.id, by: 'text' }
  const apply = (changes: object) =>
    database.transaction((tx) =>
      changeOptOuts(tx, [{ ...change, at: at(1), recipient: '', is_out: true, ...changes }]),
    )
  await apply({ recipient: '+551187654321' })
  await apply({ recipient: '+5511987654321', is_out: false, at: at(2) })
  t.equal(await outs(team.id), '')
})

t.test('start and stop in the same second are an opt-out', async (t) => {
  const { team } = await begin(t)
  const change = { team_id: team.id, recipient: '+15555550101', at: at(1), by: 'text' }
  for (const order of [
    [true, false],
    [false, true],
  ]) {
    await database.query(sql.unsafe`delete from whatsapp_opt_outs`)
    const changes = order.map((is_out) => ({ ...change, is_out }))
    await database.transaction((tx) => changeOptOuts(tx, changes))
    t.equal(await outs(team.id), '+15555550101 text', order.join())
  }
})

t.test('opt-outs are listed with the newest first', async (t) => {
  const { team } = await begin(t)
  const changes = [1, 3, 2].map((second) => ({
    ...{ team_id: team.id, recipient: `+1555555010${second}`, is_out: true, at: at(second), by: 'text' },
  }))
  await database.transaction((tx) => changeOptOuts(tx, changes))
  t.strictSame(await cli.json(['whatsapp', 'opt-outs', team.id]), [
    ...[3, 2, 1].map((second) => ({
      ...{ to: `+1555555010${second}`, at: at(second).toISOString(), by: 'text' },
    })),
  ])
})

t.test('an opted-out message counts towards the quota', async (t) => {
  const { team, one, row, work, cloud } = await begin(t, {
    definition: aTemplate({}, { category: 'MARKETING' }),
  })
  await cli.json(['whatsapp', 'opt-out', team.id, '+15555550101'])
  const id = await one()
  const worker = await work()
  await until('it has failed', async () => (await row(id)).status === 'failed')
  t.equal((await usedBy(service, team.id)).whatsapp, 1)
  t.equal(cloud.messages().length, 0)
  await worker.stop()
})

t.test('a reply only matches a message of the same number', async (t) => {
  const { team, one } = await begin(t)
  await makeNumber(service, {
    name: 'scope',
    phone_number_id: 'scope-1',
    account_id: 'scope',
    token: 'a-token',
  })
  await makeDefaultNumber(service, { phone_number_id: 'scope-0', account_id: null })
  const id = await one({ to: ['+15555550133'] })
  await database.query(sql.unsafe`
    update whatsapp_messages set provider_message_id = 'wamid.scope', accepted_at = now() where id = ${id}`)
  const stop = { from: '15555550133', reply_to: 'wamid.scope' }
  t.match(await report({ ...stop, number: 'scope-1' }), [{ kind: 'ignored' }])
  t.equal(await outs(team.id), '')
  t.match(await report({ ...stop, number: 'scope-0' }), [{ kind: 'applied' }])
  t.equal(await outs(team.id), '+15555550133 text')
})

t.test('an unknown default number differs from all others', async (t) => {
  const { team, one, row } = await begin(t)
  const own = await begin(t)
  await database.query(sql.unsafe`delete from whatsapp_numbers where name = 'default'`)
  const number = { name: 'only', phone_number_id: 'only-1', account_id: 'only', token: 'a-token' }
  await makeNumber(service, number)
  await giveNumber(service, own.team.id, 'only')
  const id = await one({ to: ['+15555550144'] })
  await setTaken(service, id)
  const stranger = { number: 'only-1', from: '15555550145' }
  t.match(await report(stranger), [{ kind: 'applied' }], 'it has one team')
  t.equal(await outs(own.team.id), '+15555550145 text')
  t.match(await report({ ...stranger, from: '15555550144' }), [{ kind: 'applied' }])
  t.equal(await outs(team.id), '', 'another number wrote to this recipient')
  const status = (reported: string) => ({
    ...{ ref: { team_id: team.id, id }, status: 'read' as const, occurred_at: new Date(), detail: '' },
    ...{ event_key: reported, provider_message_id: null, number: reported },
  })
  const apply = (reported: string) =>
    database.transaction((tx) => applyReportedWhatsapp(tx, [status(reported)], new Date()))
  t.match(await apply('only-1'), [{ kind: 'ignored' }])
  t.equal((await row(id)).status, 'queued')
  t.match(await apply('perhaps-the-default'), [{ kind: 'applied' }])
  t.equal((await row(id)).status, 'read')
})

t.test('a number’s own hook opts out of its team, and an erasure deletes its reports', async (t) => {
  const { team, one } = await begin(t)
  const secret = 'secret-of-the-hook'
  const number = { phone_number_id: 'hook-1', account_id: 'hook', token: 'a-token', app_secret: secret }
  await makeNumber(service, { ...number, name: 'hook' })
  await giveNumber(service, team.id, 'hook')
  const to = '+15555550155'
  const id = await one({ to: [to] })
  await setTaken(service, id)
  const post = async (value: object) => {
    const changes = [{ field: 'messages', value: { metadata: { phone_number_id: 'hook-1' }, ...value } }]
    const hook = { path: '/hooks/whatsapp/hook', secret }
    t.equal((await postUpdates(service, { entry: [{ id: 'hook', changes }] }, hook)).status, 200)
  }
  const timestamp = String(Math.floor(Date.now() / 1_000))
  const about = { id: 'wamid.hook', timestamp, biz_opaque_callback_data: `${team.id}:${id}` }
  await post({ statuses: [{ ...about, status: 'read', recipient_id: to.slice(1) }] })
  await post({
    messages: [{ id: 'wamid.in', from: to.slice(1), timestamp, type: 'text', text: { body: 'Baja' } }],
  })
  const worker = await startWorker(t, service)
  await until('it is applied', async () => (await outs(team.id)) === `${to} text`)
  const reports = () =>
    database.oneFirst(sql.type(countRow)`
      select count(*) from reports where state = 'done' and encode(body, 'escape') ~ ${to.slice(1)}
        and ${team.id} = any(team_ids)`)
  await until('the status is read', async () => (await reports()) === 1)
  await worker.stop()
  t.match(await cli.json(['contact', 'erase', team.id, to]), { reports: 1, whatsapp_opt_outs: 1 })
  t.equal(await reports(), 0)
})

t.test('a failure of an erased message opts no one out', async (t) => {
  const { team, one, row } = await begin(t)
  const id = await one({ to: ['+15555550166'] })
  await setTaken(service, id)
  await cli.json(['contact', 'erase', team.id, '+15555550166'])
  const failed = {
    ...{ ref: { team_id: team.id, id }, status: 'failed' as const, occurred_at: new Date(), detail: '' },
    ...{ code: '131050', event_key: 'erased', provider_message_id: null, number: null },
  }
  await database.transaction((tx) => applyReportedWhatsapp(tx, [failed], new Date()))
  t.equal((await row(id)).status, 'failed')
  t.equal(
    await database.oneFirst(sql.type(countRow)`
      select count(*) from whatsapp_opt_outs where team_id = ${team.id}`),
    0,
  )
})
