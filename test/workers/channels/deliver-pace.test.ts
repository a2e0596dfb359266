/**
 * Rate limits of providers, shared by all workers. With real workers, a simulated SES API and a real SMTP
 * server.
 */
import { listSenders, resumeSender } from '../../../db/delivery/senders/show.ts'
import { emailById } from '../../../db/messages/emails/emails.sql.ts'
import { eventsOfEmail } from '../../../db/messages/emails/events.sql.ts'
import { createQueuePauses } from '../../../db/queue/pauses.ts'
import { createSesProvider } from '../../../workers/providers/ses/adapter.ts'
import { shiftClock } from '../../support/clock.ts'
import { ageByADay, jobStates, sendersOf, sentCount, setJobsDue } from '../../support/rows.ts'
import { makeTeam, type Service, sendEmails, worldOf } from '../../support/service.ts'
import { type SesApi, type SesCall, type SesScript, startSesApi } from '../../support/ses-api.ts'
import { shareService } from '../../support/shared-service.ts'
import { startSmtpSink } from '../../support/smtp-sink.ts'
import t, { type Test } from '../../support/tap.ts'
import { startProcess, startWorker, until } from '../../support/worker.ts'

const renewed = await shareService(t)

const PAUSED = { status: 400, type: 'SendingPausedException', message: 'Sending is paused.' }
const THROTTLED = { status: 429, type: 'TooManyRequestsException', message: 'Maximum sending rate exceeded.' }
const UNVERIFIED = { status: 400, type: 'MailFromDomainNotVerifiedException' }

async function begin(t: Test, script: SesScript) {
  const service = await renewed()
  return { service, api: await startSesApi(t, script), team: await makeTeam(service) }
}

async function work(t: Test, service: Service, api: SesApi, clock = () => new Date()) {
  const email = createSesProvider({ region: 'eu-west-1', endpoint: api.url, max_connections: 50 })
  t.teardown(() => email.close())
  const pausesOf = createQueuePauses(service.database)
  let looks = 0
  const pauses: typeof pausesOf = (job) => {
    if (job === 'deliver-email') looks += 1
    return pausesOf(job)
  }
  const worker = await startWorker(t, service, { smtp_url: 'smtp://unused.invalid', email, clock, pauses })
  return {
    ...worker,
    /** Waits for a complete check for claims. The previous one may have started already. */
    async looksAgain() {
      const before = looks
      await until('it has looked', () => looks > before + 2)
    },
  }
}

/** Returns the seconds from the first of these calls to the last. A busy machine only makes it longer. */
const span = (calls: readonly SesCall[]): number => ((calls.at(-1)?.at ?? 0) - (calls[0]?.at ?? 0)) / 1_000

t.test('two workers together respect the account’s rate', async (t) => {
  const { service, api, team } = await begin(t, { account: () => 40 })
  await sendEmails(service, team, Array(100).fill({}))
  await Promise.all([work(t, service, api), work(t, service, api)])
  await until('all are sent', async () => (await sentCount(service, team.id)) === 100)
  t.ok(span(api.calls) > 2, `100 in ${span(api.calls)} s at 36 a second`)
  t.equal(api.calls.length, 100)
})

t.test('a send to many recipients uses as many tokens', async (t) => {
  const { service, api, team } = await begin(t, { account: () => 40 })
  const to = Array.from({ length: 20 }, (_, index) => `n${index}@example.org`)
  await sendEmails(service, team, Array(4).fill({ to }))
  await work(t, service, api)
  await until('all are sent', async () => (await sentCount(service, team.id)) === 4)
  t.ok(span(api.calls) > 1.3, `80 recipients in ${span(api.calls)} s at 36 a second`)
})

t.test('a throttled sender continues at half the rate', async (t) => {
  const { service, api, team } = await begin(t, {
    account: () => 40,
    onSend: (_call, nth) => (nth === 5 ? THROTTLED : undefined),
  })
  await sendEmails(service, team, Array(60).fill({}))
  await work(t, service, api)
  await until('all but the throttled one are sent', async () => (await sentCount(service, team.id)) >= 59)
  const [sender] = await sendersOf(service)
  t.match(sender, { key: 'ses:eu-west-1', rate: 18 })
  // Sends reserved before the rejection still went at the old rate: 20 jobs in flight.
  const late = api.calls.slice(25, 60)
  t.ok(span(late) > 1.3, `${late.length} in ${span(late)} s at 18 a second`)
  const throttled = api.calls[4]?.tags.email_id ?? ''
  await until('it is sent too', async () => (await sentCount(service, team.id)) === 60)
  const events = await eventsOfEmail(service.database, team.id, throttled)
  t.match(events, [{ kind: 'sent' }], 'the pace is no business of the message')
})

t.test('a paused account stops everything without using attempts', async (t) => {
  let paused = true
  const { service, api, team } = await begin(t, { onSend: () => (paused ? PAUSED : undefined) })
  const [first] = await sendEmails(service, team, Array(1).fill({}))
  const worker = await work(t, service, api)
  await until('the sender is paused', async () => (await sendersOf(service))[0]?.paused_until != null)
  t.match((await sendersOf(service))[0]?.pause_reason, 'SendingPausedException')
  const later = await sendEmails(service, team, Array(30).fill({}))
  const all = [first ?? '', ...later]
  await worker.stop()
  t.equal(api.calls.length, 1, 'nobody tried the door again')
  for (const id of all) {
    t.strictSame(await jobStates(service, id), ['created'])
    t.strictSame(await eventsOfEmail(service.database, team.id, id), [], 'the account’s own timeline has it')
  }
  t.match(await listSenders(service.database), [
    { key: 'ses:eu-west-1', state: 'paused', events: [{ kind: 'paused', detail: /SendingPaused/ }] },
  ])
  paused = false
  for (const id of all) await setJobsDue(service, id)
  await shiftClock(service.database, 901)
  await work(t, service, api)
  await until('all are sent', async () => (await sentCount(service, team.id)) === 31)
})

t.test('workers whose clocks are hours off follow the database’s clock', async (t) => {
  const { service, api, team } = await begin(t, {
    account: () => 40,
    onSend: (_call, nth) => (nth === 1 ? PAUSED : undefined),
  })
  const off = (hours: number) => () => new Date(Date.now() + hours * 3_600_000)
  const [first = ''] = await sendEmails(service, team, Array(1).fill({}))
  const ahead = await work(t, service, api, off(3))
  await until('the account is paused', async () => (await sendersOf(service))[0]?.paused_until != null)
  const pause = Date.parse((await sendersOf(service))[0]?.paused_until ?? '') - Date.now()
  t.ok(pause > 800_000 && pause <= 900_000, `${pause} ms`)
  await sendEmails(service, team, Array(100).fill({}))
  await setJobsDue(service, first)
  const behind = await work(t, service, api, off(-3))
  await shiftClock(service.database, 880)
  await Promise.all([ahead.looksAgain(), behind.looksAgain()])
  t.equal(api.calls.length, 1, 'neither begins before the pause is over')
  await shiftClock(service.database, 901)
  await until('all are sent', async () => (await sentCount(service, team.id)) === 101)
  await ahead.stop()
  t.ok(span(api.calls.slice(1)) > 2, `100 in ${span(api.calls.slice(1))} s at 36 a second`)
  const [sent] = await eventsOfEmail(service.database, team.id, first)
  const late = Date.parse(sent?.occurred_at ?? '') - Date.now() - 901_000
  t.ok(Math.abs(late) < 60_000, `its timeline is ${late} ms off`)
})

t.test('a domain unknown to SES doesn’t delay others', async (t) => {
  const { service, api, team } = await begin(t, {
    onSend: ({ from }) => (from.endsWith('@example.com') ? UNVERIFIED : undefined),
  })
  const other = await makeTeam(service, { domain: 'example.net' })
  const [waiting = ''] = await sendEmails(service, team, Array(1).fill({}))
  await work(t, service, api)
  await until('it was refused', () => api.calls.length === 1)
  await sendEmails(service, other, Array(5).fill({ from: 'hello@example.net' }))
  await until('the others are sent', async () => (await sentCount(service, other.id)) === 5)
  await until('it is put off', async () => (await jobStates(service, waiting))[0] === 'retry')
  const wait = await setJobsDue(service, waiting)
  t.ok(wait > 500 && wait <= 600, `${wait} s`)
  t.match(await eventsOfEmail(service.database, team.id, waiting), [
    { kind: 'held', detail: /^MailFromDomainNotVerifiedException/ },
    { kind: 'deferred', detail: /^MailFromDomainNotVerifiedException/ },
  ])
  t.match((await sendersOf(service))[0], { paused_until: null, slowed_at: null })
})

t.test('an email paused for 24 h is sent afterwards', async (t) => {
  const { service, api, team } = await begin(t, { onSend: (_call, nth) => (nth === 1 ? PAUSED : undefined) })
  await sendEmails(service, team, Array(1).fill({}))
  const first = await work(t, service, api)
  await until('the account is paused', async () => (await sendersOf(service))[0]?.paused_until != null)
  const [id = ''] = await sendEmails(service, team, Array(1).fill({}))
  await ageByADay(service, id)
  await until(
    'it waits',
    async () => (await jobStates(service, id))[0] === 'created' && api.calls.length === 1,
  )
  await first.stop()
  await service.database.transaction((tx) =>
    resumeSender({ tx, now: new Date(), actor: 'cli' }, 'ses:eu-west-1'),
  )
  await setJobsDue(service, id)
  await work(t, service, api)
  await until('it is sent', async () => (await emailById(service.database, team.id, id))?.status === 'sent')
})

t.test('an SMTP relay has no rate limit until it throttles', async (t) => {
  let throttled = false
  const { service, team } = await worldOf(await renewed())
  const sink = await startSmtpSink(t, { onRcpt: () => (throttled ? '421 4.7.0 Throttled' : undefined) })
  await startWorker(t, service, { smtp_url: sink.url })
  await sendEmails(service, team, Array(50).fill({}))
  await until('all are sent', async () => (await sentCount(service, team.id)) === 50)
  t.strictSame(await sendersOf(service), [])
  throttled = true
  await sendEmails(service, team, Array(1).fill({}))
  await until('the relay is slowed', async () => (await sendersOf(service)).length === 1)
  t.match((await sendersOf(service))[0], { key: `smtp:${new URL(sink.url).host}`, rate: 100 })
})

t.test('EMAIL_PROVIDER makes a worker process send through SES', async (t) => {
  const { service, api, team } = await begin(t, {})
  await startProcess(t, 'workers/main.ts', {
    DATABASE_URL: service.url,
    EMAIL_PROVIDER: 'ses',
    AWS_REGION: 'eu-west-1',
    SES_ENDPOINT: api.url,
    SES_CONFIGURATION_SET: 'main',
    AWS_ACCESS_KEY_ID: 'AKIATEST',
    AWS_SECRET_ACCESS_KEY: 'test',
  })
  const [id = ''] = await sendEmails(service, team, Array(1).fill({}))
  await until('it is sent', async () => (await sentCount(service, team.id)) === 1)
  t.match(api.calls, [{ configuration_set: 'main', tags: { team_id: team.id, email_id: id } }])
  t.match(await emailById(service.database, team.id, id), { provider_message_id: '0100-1-000000' })
})
