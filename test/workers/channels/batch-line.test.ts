/**
 * The lane of batches, from the API to the provider: single sends overtake the same team's batches, by email
 * and by WhatsApp. Positions are tested in test/db/queue/fair-queue.test.ts.
 */
import { subscribeTeam } from '../../../db/accounts/teams/subscribe.ts'
import { anEmail, byCli, type Service, world } from '../../support/service.ts'
import { startSmtpSink } from '../../support/smtp-sink.ts'
import t from '../../support/tap.ts'
import { aMessage, type Json, numbers } from '../../support/whatsapp.ts'
import { startDeliveries } from '../../support/whatsapp-delivery.ts'
import { startWorker, until } from '../../support/worker.ts'

/** The size of the backlog before a single send, and how many of it may arrive first. */
const FLOOD = 4_000
const NEXT = 200

/** Lifts a team's limits for these tests. */
const unlimited = ({ database }: Service, teamId: string) =>
  database.transaction((tx) =>
    subscribeTeam(byCli(tx), teamId, { plan: 'pro', send_rate_per_second: 10_000 }),
  )

t.test('a sign-in code overtakes 4,000 batched receipts of its team', async (t) => {
  const { service, team } = await world(t, { team: { plan: 'pro' } })
  const sink = await startSmtpSink(t)
  await unlimited(service, team.id)
  const { key } = team
  const batch = async (items: number, to: string) => {
    const emails = Array.from({ length: items }, () => anEmail({ to: [to] }))
    const { status, body } = await service.call('POST', '/v1/emails/batch', { key, body: { emails } })
    t.equal(status, 200)
    const refused = body.data.filter(({ error }: Json) => error)
    t.strictSame(refused, [])
  }
  const single = async (to: string) => {
    const { status } = await service.call('POST', '/v1/emails', { key, body: anEmail({ to: [to] }) })
    t.equal(status, 201)
  }
  const arrived = () => sink.recipients().flat()
  await single('early@example.org')
  for (let made = 0; made < FLOOD; made += 100) await batch(100, 'receipt@example.org')
  await batch(1, 'batch-of-one@example.org')
  await single('code@example.org')
  await startWorker(t, service, { smtp_url: sink.url })
  await until('the code is there', () => arrived().includes('code@example.org'))
  t.ok(arrived().indexOf('code@example.org') < NEXT, 'before it has begun')
  await until('many are there', () => arrived().length > 500)
  const before = arrived().length
  await single('later@example.org')
  await until('the next is there', () => arrived().includes('later@example.org'))
  const passed = arrived().indexOf('later@example.org') - before
  t.ok(passed < NEXT, `while it is under way: ${passed} came before`)
  t.notOk(arrived().includes('batch-of-one@example.org'), 'a batch of one is a batch')
})

t.test('a single WhatsApp message overtakes a batch of 4,000', async (t) => {
  const { service, begin } = await startDeliveries(t)
  const { team, template, cloud, one, work } = await begin(t)
  await unlimited(service, team.id)
  const messages = Array.from({ length: FLOOD / 50 }, (_, item) =>
    aMessage(template.id, { to: numbers(50, item * 50) }),
  )
  const { key } = team
  const { status, body } = await service.call('POST', '/v1/whatsapp/messages/batch', {
    key,
    body: { messages },
  })
  t.equal(status, 200)
  const refused = body.data.filter(({ error }: Json) => error)
  t.strictSame(refused, [])
  const to = '+15555560101'
  await one({ to: [to] })
  await work()
  const arrived = () => cloud.messages().map((message) => message.body.to)
  await until('it is there', () => arrived().includes(to))
  t.ok(arrived().indexOf(to) < NEXT, `${arrived().indexOf(to)} came before`)
})
