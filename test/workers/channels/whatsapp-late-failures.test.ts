/** Failures that Meta reports after it accepted a message. Real hook, real queue, real worker. */
import { sql } from 'slonik'
import { string } from 'yup'
import { applyReportedWhatsapp } from '../../../db/messages/whatsapp/apply-events.ts'
import { countRow, nameRow, row } from '../../../db/postgres/rows.ts'
import { numberWhatsappChannel } from '../../../workers/channels/deliver-whatsapp-number.ts'
import { statusOf, statusWebhook } from '../../sandbox/whatsapp.ts'
import { adminCli } from '../../support/admin.ts'
import { runClock, stopClock } from '../../support/clock.ts'
import { BUSINESS_ACCOUNT_ID } from '../../support/cloud.ts'
import { ageByADay } from '../../support/rows.ts'
import t, { type Test } from '../../support/tap.ts'
import { aTemplate, jobOf, setDue, setStatus, templateOf } from '../../support/whatsapp.ts'
import { answering, startDeliveries } from '../../support/whatsapp-delivery.ts'
import { giveNumber, makeDefaultNumber, makeNumber } from '../../support/whatsapp-numbers.ts'
import { startWorker, until } from '../../support/worker.ts'

const { service, begin: beginWithNumbers } = await startDeliveries(t)
const { database } = service
const cli = adminCli({ DATABASE_URL: service.url })
const HOUR = 3_600_000
const FAILED = { status: 'failed' as const, errors: [{ code: 131_000, title: 'Something went wrong' }] }

/** Begins without any stored number. */
async function begin(...args: Parameters<typeof beginWithNumbers>) {
  await database.query(sql.unsafe`update teams set whatsapp_number = null`)
  await database.query(sql.unsafe`delete from whatsapp_numbers`)
  return beginWithNumbers(...args)
}

/** Begins with a team that has its own number. */
async function beginWithOwn(t: Test, name: string) {
  const begun = await begin(t)
  await makeNumber(service, { name, phone_number_id: `${name}-1`, account_id: name, token: 'a-token' })
  await giveNumber(service, begun.team.id, name)
  return begun
}

const pathOf = ({ path }: { path: string }): string => path.split('/')[2] ?? ''

const pauseRow = row({ sender: string(), recipient: string() })
const recipientPauses = () =>
  database.any(sql.type(pauseRow)`select sender, recipient from recipient_pauses order by recipient`)

t.test('a late failure is sent again from its own number', async (t) => {
  const { team, cloud, oneTaken, report, work } = await beginWithOwn(t, 'late')
  const worker = await work()
  await oneTaken()
  await giveNumber(service, team.id, null)
  await report(FAILED)
  await until('it is sent again', () => cloud.messages().length === 2)
  t.same(cloud.messages().map(pathOf), ['late-1', 'late-1'])
  await worker.stop()
})

t.test('messages with named variables keep their queue after late failures', async (t) => {
  const definition = aTemplate(
    {},
    { parameter_format: 'NAMED', components: [{ type: 'BODY', text: 'Hello {{name}}' }] },
  )
  const { oneTaken, report, work } = await begin(t, { definition })
  const worker = await work()
  const id = await oneTaken()
  await report(FAILED)
  await until('it waits', async () => (await jobOf(service, id)) !== null)
  const queue = await database.oneFirst(sql.type(nameRow)`select name from pgboss.job where id = ${id}`)
  t.equal(queue, 'deliver-whatsapp-parts')
  await worker.stop()
})

t.test('a late pair limit pauses both forms of the recipient', async (t) => {
  const { cloud, oneTaken, report, work } = await begin(t)
  const worker = await work()
  const id = await oneTaken({ to: ['+5511987654321'] })
  const number = cloud.delivery.number?.phone_number_id ?? ''
  await makeDefaultNumber(service, { phone_number_id: number, account_id: null })
  await report({ status: 'failed', errors: [{ code: 131_056, title: 'Pair rate limit' }] })
  await until('it waits', async () => (await jobOf(service, id)) !== null)
  const sender = `whatsapp:${number}`
  t.strictSame(await recipientPauses(), [
    { sender, recipient: '+551187654321' },
    { sender, recipient: '+5511987654321' },
  ])
  await worker.stop()
})

t.test('a requeue sends a message again that waits after a late failure', async (t) => {
  const { team, oneTaken, report, row, work } = await begin(t)
  const worker = await work()
  const id = await oneTaken()
  await report({ status: 'sent' })
  await until('it is sent', async () => (await row(id)).status === 'sent')
  await t.rejects(cli.json(['whatsapp', 'requeue', team.id, id]), /can't be sent again/)
  await worker.stop()
  // It reads reports and sends no WhatsApp messages.
  const reader = await startWorker(t, service)
  await report(FAILED)
  await until('it waits', async () => (await row(id)).accepted_at === null)
  await reader.stop()
  t.match(await cli.json(['whatsapp', 'requeue', team.id, id]), { id, requeued_at: /Z$/ })
  t.match(await cli.json(['whatsapp', 'show', team.id, id]), {
    ...{ status: 'sent', waiting: { state: 'not_taken_yet' } },
  })
})

t.test("a template's pause isn't counted as time of attempts", async (t) => {
  const { team, template, one, kinds, waits, row, work } = await begin(t, {
    onMessage: () => answering(131_000, 500),
  })
  await makeDefaultNumber(service, { phone_number_id: 'hours', account_id: null })
  const id = await one()
  const first = await work()
  await until('it is deferred', () => waits(id, 1))
  await first.stop()
  await ageByADay(service, id)
  for (const [hours, status] of [
    [20, 'paused'],
    [10, 'approved'],
  ] as const) {
    await stopClock(database, new Date(Date.now() - hours * HOUR))
    await setStatus(service, team.id, template.id, status)
  }
  await runClock(database)
  await setDue(service, [id])
  const second = await work()
  await until('it is deferred again', () => waits(id, 2))
  await second.stop()
  t.same(await kinds(id), ['deferred', 'deferred'])
  await database.query(sql.unsafe`
    update whatsapp_messages set accepted_at = now(), provider_message_id = 'wamid.hours' where id = ${id}`)
  const failed = {
    ...{ ref: { team_id: team.id, id }, status: 'deferred' as const, occurred_at: new Date() },
    ...{ detail: '131000', event_key: 'late', provider_message_id: 'wamid.hours', number: null },
  }
  await database.transaction((tx) => applyReportedWhatsapp(tx, [failed], new Date()))
  t.match(await row(id), { status: 'queued', accepted_at: null }, 'after a late failure neither')
})

t.test('a state of another account’s template neither stops a message nor comes from it', async (t) => {
  let code = 0
  const { template, cloud, one, row, work } = await begin(t, {
    onMessage: () => (code === 0 ? undefined : answering(code)),
  })
  await makeDefaultNumber(service, { phone_number_id: 'own-state', account_id: BUSINESS_ACCOUNT_ID })
  const [kept, failed] = [await one(), await one()]
  await database.query(sql.unsafe`delete from pgboss.job where id = ${failed}`)
  // The team has moved to another account, and the sync has found its template there.
  await database.query(sql.unsafe`
    update whatsapp_templates set account_id = 'another', status = 'disabled', status_at = '2026-01-01'
    where id = ${template.id}`)
  const worker = await work()
  await until('it is sent', async () => (await row(kept)).provider_message_id !== null)
  await database.query(sql.unsafe`
    update whatsapp_templates set status = 'approved' where id = ${template.id}`)
  code = 132_016
  await cli.json(['whatsapp', 'requeue', (await row(failed)).team_id, failed])
  await until('it has failed', async () => (await row(failed)).status === 'failed')
  t.match(await templateOf(service, template.id), { status: 'approved', fault: null }, 'by a response')
  const late = cloud
    .messages()
    .slice(0, 1)
    .map((message) => statusOf(message, { status: 'failed', errors: [{ code }] }))
  await cloud.post(statusWebhook('own-state', late))
  await until('it is reported', async () => (await row(kept)).status === 'failed')
  t.match(await templateOf(service, template.id), { status: 'approved', fault: null }, 'by webhook')
  await worker.stop()
})

t.test("a message claimed just before its number's pause waits", async (t) => {
  const { team, cloud, one } = await beginWithOwn(t, 'claimed')
  const message_id = await one()
  const { secrets, log } = service.deps
  const channel = numberWhatsappChannel({ database, whatsapp: cloud.delivery, secrets, log })
  const data = { team_id: team.id, message_id, phone_number_id: 'claimed-1' }
  const job = { data } as Parameters<typeof channel.read>[0][number]
  const wait = async () => (await channel.read([job])).get(job)?.own_wait_seconds
  t.equal(await wait(), 0)
  await cli.json(['number', 'pause', 'claimed'])
  t.ok(((await wait()) ?? 0) > 0)
})

t.test('stores the recipient’s ID if it differs from the number', async (t) => {
  const taken = { contacts: [{ wa_id: '551187654321' }], messages: [{ id: 'wamid.br' }] }
  const { team, one, row, work } = await begin(t, { onMessage: () => ({ status: 200, body: taken }) })
  const worker = await work()
  const [brazilian, equal] = [await one({ to: ['+5511987654321'] }), await one({ to: ['+551187654321'] })]
  for (const id of [brazilian, equal])
    await until('it is taken', async () => (await row(id)).accepted_at !== null)
  t.match(await cli.json(['whatsapp', 'show', team.id, brazilian]), { wa_id: '551187654321' })
  t.match(await cli.json(['whatsapp', 'show', team.id, equal]), { wa_id: null })
  await worker.stop()
})

t.test('an expired message after a late failure sends whatsapp.failed', async (t) => {
  const { team, oneTaken, report, work } = await begin(t)
  const worker = await work()
  const id = await oneTaken({ expires_in: 60 })
  await cli.json(['webhook', 'add', team.id, '--url', 'https://hooks.example.com', '--types', '*'])
  await database.query(sql.unsafe`
    update whatsapp_messages set expires_at = now() - interval '1 second', status = 'sent' where id = ${id}`)
  await report(FAILED)
  await until(
    'it has expired',
    async () =>
      (await database.oneFirst(sql.type(countRow)`
        select count(*) from webhook_messages
        where team_id = ${team.id} and type = 'whatsapp.failed' and body ~ 'expired: '`)) === 1,
  )
  t.match(await cli.json(['whatsapp', 'show', team.id, id]), { status: 'sent', waiting: { state: 'failed' } })
  await worker.stop()
})
