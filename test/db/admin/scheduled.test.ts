/**
 * The verbs of scheduled and expired messages. Only a requeue of a single message with --force sends them.
 * DECISIONS: Scheduled messages.
 */
import { sql } from 'slonik'
import { auditEntries } from '../../../db/accounts/audit/audit.sql.ts'
import { EMAIL } from '../../../db/channels/email.sql.ts'
import { WHATSAPP } from '../../../db/channels/whatsapp.sql.ts'
import { releaseAll } from '../../../db/delivery/schedule.ts'
import { createSecrets } from '../../../db/process/secrets.ts'
import { openConsumer } from '../../../db/queue/boss.ts'
import { requeueStale } from '../../../workers/jobs/requeue-stale.ts'
import { adminCli } from '../../support/admin.ts'
import { runClock, shiftClock } from '../../support/clock.ts'
import { SECRET_KEY } from '../../support/environment.ts'
import { erasePerson } from '../../support/erase.ts'
import { jobStates, removeDomains, usedBy } from '../../support/rows.ts'
import { anEmail, METRICS_TOKEN, makeTeam, sendEmail, startService } from '../../support/service.ts'
import t from '../../support/tap.ts'
import { aMessage, makeTemplate } from '../../support/whatsapp.ts'

const HOUR = 3_600_000
const service = await startService(t)
const { call, database } = service
const cli = adminCli({ DATABASE_URL: service.url })
t.afterEach(() => runClock(database))
const ahead = (ms: number): string => new Date(Date.now() + ms).toISOString()
const release = () => releaseAll(service.deps)

const CHANNELS = [
  { channel: EMAIL, path: '/v1/emails', quota: 'emails' },
  { channel: WHATSAPP, path: '/v1/whatsapp/messages', quota: 'whatsapp' },
] as const

for (const { channel, path, quota } of CHANNELS) {
  const noun = channel.name
  const team = await makeTeam(service)
  const template = await makeTemplate(service, team.id)
  const send = async (changes: object): Promise<string> => {
    const body = noun === 'email' ? anEmail({ ...changes }) : aMessage(template.id, { ...changes })
    const { status, body: answer } = await call('POST', path, { key: team.key, body })
    if (status !== 201) throw new Error(JSON.stringify(answer))
    return noun === 'email' ? answer.id : answer.data[0].id
  }
  const show = (id: string) => cli.json([noun, 'show', team.id, id])
  const ids = async (...flags: string[]) =>
    (await cli.json([noun, 'list', team.id, ...flags])).map(({ id }: { id: string }) => id)
  const traces = async (id: string) =>
    (await auditEntries(database, { team: team.id, limit: 100 }))
      .filter(({ subject }) => subject === id)
      .map(({ action, actor, detail }) => `${action} by ${actor}: ${detail}`)

  t.test(`${noun} list --scheduled shows scheduled messages and their expiry`, async (t) => {
    const at = ahead(HOUR)
    const [id, plain] = [await send({ scheduled_at: at, expires_in: 60 }), await send({})]
    t.strictSame(await ids('--scheduled'), [id])
    t.ok((await ids()).includes(plain))
    t.match(await show(id), {
      status: 'queued',
      scheduled_at: at,
      expires_at: new Date(Date.parse(at) + 60_000).toISOString(),
      waiting: { state: 'scheduled', next_attempt_at: at, attempts: 0, last_response: null },
    })
    await cli.json([noun, 'cancel', team.id, id])
  })

  t.test(`${noun} cancel deletes a message once, and refunds its quota`, async (t) => {
    const used = (await usedBy(service, team.id))[quota]
    const id = await send({ scheduled_at: ahead(HOUR) })
    t.strictSame(await cli.json([noun, 'cancel', team.id, id]), { id, cancelled: true })
    t.equal((await usedBy(service, team.id))[quota], used)
    t.match(await cli.fault([noun, 'cancel', team.id, id]), /^No /)
    t.strictSame(await traces(id), [`${noun}.cancel by cli: `])
    const plain = await send({})
    const fault = await cli.fault([noun, 'cancel', team.id, plain])
    t.match(fault, /This message can no longer be cancelled or rescheduled./)
  })

  t.test(`${noun} reschedule moves the time and the expiry`, async (t) => {
    const id = await send({ scheduled_at: ahead(HOUR), expires_in: 60 })
    const [at, end] = [ahead(2 * HOUR), 60_000]
    const move = (time: string) => [noun, 'reschedule', team.id, id, '--at', time]
    t.strictSame(await cli.json(move(at)), { id, scheduled_at: at })
    t.match(await show(id), {
      scheduled_at: at,
      expires_at: new Date(Date.parse(at) + end).toISOString(),
      waiting: { state: 'scheduled', next_attempt_at: at },
    })
    t.match(await cli.fault(move(ahead(91 * 24 * HOUR))), /at most 90 days ahead/)
    t.match(await cli.fault(move(ahead(-HOUR))), /in the past/)
    t.match(await cli.fault(move('tomorrow')), /--at|time/)
    t.strictSame(await traces(id), [`${noun}.reschedule by cli: ${at}`])
    const now = ahead(-60_000)
    await cli.json(move(now))
    t.match(await show(id), { scheduled_at: now, waiting: { state: 'scheduled' } })
    await release()
    t.strictSame(await jobStates(service, id), ['created'], 'a time that has just passed is now')
  })

  t.test(`${noun} requeue of a scheduled message suggests reschedule and --force`, async (t) => {
    const at = ahead(HOUR)
    const id = await send({ scheduled_at: at, expires_in: 600 })
    for (const flags of [[], ['--dry-run']])
      t.match(await cli.fault([noun, 'requeue', team.id, id, ...flags]), /reschedule.*--force/)
    t.match(await show(id), { scheduled_at: at })
    const { requeued_at } = await cli.json([noun, 'requeue', team.id, id, '--force'])
    t.match(await show(id), {
      status: 'queued',
      scheduled_at: requeued_at,
      expires_at: new Date(Date.parse(requeued_at) + 600_000).toISOString(),
      waiting: { state: 'not_taken_yet' },
    })
    t.strictSame(await jobStates(service, id), ['created'])
    t.strictSame(await traces(id), [`${noun}.requeue by cli: it was scheduled`])
    t.match(await cli.fault([noun, 'cancel', team.id, id]), /no longer/)
  })

  t.test(`${noun} requeue --force removes the expiry of expired messages`, async (t) => {
    const id = await send({ expires_in: 60 })
    await shiftClock(database, 61)
    t.match(await cli.fault([noun, 'requeue', team.id, id]), /has expired.*--force/)
    await cli.json([noun, 'requeue', team.id, id, '--force'])
    const shown = await show(id)
    t.match(shown, { status: 'queued', waiting: { state: 'not_taken_yet' } })
    t.notOk('expires_at' in shown)
    t.strictSame(await traces(id), [`${noun}.requeue by cli: it had expired`])
  })

  t.test(`${noun}: a requeue by filter and the sweep skip both`, async (t) => {
    const scheduled = await send({ scheduled_at: ahead(48 * HOUR) })
    const expired = await send({ expires_in: 60 })
    const plain = await send({})
    await shiftClock(database, 61)
    const before = [await show(scheduled), await show(expired)]
    for (const flags of [
      ['--status', 'queued'],
      ['--since', '2020-01-01'],
      ['--since', '2020-01-01', '--force'],
    ]) {
      const { ids: requeued } = await cli.json([noun, 'requeue', team.id, ...flags])
      t.ok(requeued.includes(plain))
      t.notOk(requeued.includes(scheduled) || requeued.includes(expired), flags.join(' '))
    }
    const queue = await openConsumer(service.url, { connections: 3, onError: () => {} })
    t.teardown(() => queue.stop(1_000))
    await shiftClock(database, 24 * 3_600)
    await requeueStale({ database, queue, log: service.deps.log })
    await runClock(database)
    await shiftClock(database, 61)
    t.strictSame([await show(scheduled), await show(expired)], before)
    t.strictSame(await jobStates(service, scheduled), [])
  })

  t.test(`${noun}: rejected and expired messages are requeued by ID`, async (t) => {
    const [late, lasting] = [await send({ expires_in: 60 }), await send({})]
    const status = noun === 'email' ? 'bounced' : 'failed'
    await database.query(sql.unsafe`
      update ${channel.rows} set status = ${status} where id = any(${sql.array([late, lasting], 'uuid')})`)
    await shiftClock(database, 61)
    const { ids: requeued } = await cli.json([noun, 'requeue', team.id, '--status', status, '--force'])
    t.strictSame(requeued, [lasting], 'it would be given up at once, and its refusal lost')
    t.match(await show(late), { status, requeued_at: null, waiting: null })
    await cli.json([noun, 'requeue', team.id, late, '--force'])
    t.match(await show(late), { status: 'queued', waiting: { state: 'not_taken_yet' } })
  })
}

t.test('scheduled emails of suspended teams wait after their time', async (t) => {
  const team = await makeTeam(service)
  const id = await sendEmail(service, team, { scheduled_at: ahead(HOUR) })
  const state = async () => (await cli.json(['email', 'show', team.id, id])).waiting.state
  await cli.json(['team', 'suspend', team.id])
  await removeDomains(service, team.id)
  t.equal(await state(), 'scheduled')
  await shiftClock(database, 3_600 + 60)
  await release()
  t.equal(await state(), 'suspended')
})

t.test('GET /metrics counts scheduled messages separately', async (t) => {
  const team = await makeTeam(service)
  const figures = async () => {
    const { body } = await call('GET', '/metrics', { key: METRICS_TOKEN })
    const of = (name: string) => Number(new RegExp(`^heliograph_${name} (\\d+)$`, 'm').exec(body)?.[1])
    return {
      scheduled: of('scheduled_messages{channel="email"}'),
      queued: of('queued_messages{channel="email",older_than_seconds="0"}'),
    }
  }
  const before = await figures()
  await call('POST', '/v1/emails', { key: team.key, body: anEmail({ scheduled_at: ahead(HOUR) }) })
  t.strictSame(await figures(), { ...before, scheduled: before.scheduled + 1 })
})

t.test('an erasure only deletes scheduled messages without other recipients', async (t) => {
  const team = await makeTeam(service)
  const post = async (to: string[]) => {
    const id = await sendEmail(service, team, { to, scheduled_at: ahead(HOUR) })
    return id
  }
  const alone = await post(['ana@example.org'])
  const both = await post(['ana@example.org', 'ben@example.org'])
  const secrets = createSecrets(SECRET_KEY)
  await erasePerson({ database, queue: service.deps.queue, secrets }, team.id, 'ana@example.org')
  t.match(await cli.fault(['email', 'show', team.id, alone]), /^No /)
  t.match(await cli.json(['email', 'show', team.id, both]), { waiting: { state: 'scheduled' } })
  t.equal((await usedBy(service, team.id)).emails, 1)
})
