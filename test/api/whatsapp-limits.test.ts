// POST /v1/whatsapp/messages: replays, keys and quotas. DECISIONS: Idempotency, Default quotas.

import { sql } from 'slonik'
import { subscribeTeam } from '../../db/accounts/teams/subscribe.ts'
import { showTeam } from '../../db/accounts/teams/view.ts'
import { byCli, startService } from '../support/service.ts'
import t from '../support/tap.ts'
import {
  aMessage,
  deliveryJobs,
  isRefused,
  type Json,
  numbers,
  rowsOf,
  setLimit,
  setStatus,
  whatsappClient,
} from '../support/whatsapp.ts'

const UNKNOWN = '0190a000-0000-7000-8000-000000000000'

const service = await startService(t)
const { database } = service

const { send, usedBy, sender } = whatsappClient(service)

t.test('a replay returns the original rows with their current status', async (t) => {
  const { team, key, template } = await sender()
  const body = aMessage(template.id, { to: numbers(2), idempotency_key: 'order 17' })
  const first = await send(key, body)
  t.equal(first.status, 201)
  const again = await send(key, body)
  t.equal(again.status, 200)
  t.same(again.body, first.body)
  await database.query(sql.unsafe`
    update whatsapp_messages set status = 'read' where id = ${first.body.data[1].id}`)
  t.equal((await send(key, body)).body.data.map((row: Json) => row.status).join(), 'queued,read')
  t.equal(await usedBy(team.id), 2)
  t.equal((await deliveryJobs(service, team.id)).length, 2)
})

t.test('replays ignore the body, disabled templates and the quota', async (t) => {
  const { team, key, template } = await sender()
  const first = await send(key, aMessage(template.id, { idempotency_key: 'k' }))
  await setStatus(service, team.id, template.id, 'disabled')
  await setLimit(service, team.id, 0)
  for (const other of [template.id, UNKNOWN]) {
    const reply = await send(
      key,
      aMessage(other, { to: ['+33612345678'], parameters: {}, idempotency_key: 'k' }),
    )
    t.equal(reply.status, 200)
    t.same(reply.body, first.body)
  }
  isRefused(
    t,
    await send(key, aMessage(template.id, { to: ['x'], idempotency_key: 'k' })),
    400,
    'invalid_phone',
  )
})

t.test('40 concurrent sends with one key store their rows once', async (t) => {
  const { team, key, template } = await sender()
  const body = aMessage(template.id, { to: numbers(2), idempotency_key: 'at once' })
  const replies = await Promise.all(Array.from({ length: 40 }, () => send(key, body)))
  t.equal(replies.filter(({ status }) => status === 201).length, 1)
  t.equal(replies.filter(({ status }) => status === 200).length, 39)
  t.equal(new Set(replies.map((reply) => JSON.stringify(reply.body))).size, 1)
  t.equal(await usedBy(team.id), 2)
  t.equal((await rowsOf(service, team.id)).length, 2)
})

t.test('concurrent sends never exceed the quota of messages', async (t) => {
  const { team, key, template } = await sender()
  await setLimit(service, team.id, 20)
  const replies = await Promise.all(
    Array.from({ length: 15 }, (_, index) => send(key, aMessage(template.id, { to: numbers(3, index * 3) }))),
  )
  t.equal(replies.filter(({ status }) => status === 201).length, 6)
  for (const reply of replies.filter(({ status }) => status !== 201))
    isRefused(t, reply, 402, 'quota_exceeded')
  t.equal(await usedBy(team.id), 18)
  t.equal((await rowsOf(service, team.id)).length, 18)
  t.equal((await send(key, aMessage(template.id, { to: numbers(2, 90) }))).status, 201, 'what fits is taken')
  isRefused(t, await send(key, aMessage(template.id)), 402, 'quota_exceeded')
})

t.test('the free plan has 250 messages, paid ones 10,000', async (t) => {
  for (const [plan, whatsapp] of [
    ['free', 250],
    ['pro', 10_000],
  ] as const)
    t.match(await showTeam(service.database, (await sender(plan)).team.id), { limits: { whatsapp } }, plan)
})

t.test('a moved period recounts the messages in it', async (t) => {
  const { team, key, template } = await sender()
  await send(key, aMessage(template.id, { to: numbers(3) }))
  const period = { start: new Date(Date.now() - 86_400_000), end: new Date(Date.now() + 86_400_000) }
  const move = async (change: { start: Date; end: Date }) =>
    await database.transaction((tx) => subscribeTeam(byCli(tx), team.id, { plan: 'pro', period: change }))
  t.equal((await move(period)).used.whatsapp, 3)
  await database.query(sql.unsafe`
    update whatsapp_messages set created_at = created_at - interval '2 days'
    where team_id = ${team.id} and recipient = ${numbers(1)[0] ?? ''}`)
  const later = { ...period, start: new Date(period.start.getTime() + 1000) }
  t.equal((await move(later)).used.whatsapp, 2)
})
