/** POST /hooks/relay: verification and storage of posts. */
import { createHmac } from 'node:crypto'
import { readApiSettings, reservedHeaders } from '../../../api/config.ts'
import { RELAY_HEADERS } from '../../../db/validation/relays.ts'
import {
  deliver,
  listenTo,
  mailgunSignature,
  type Post,
  postOf,
  RELAY_SECRETS,
  RELAYS,
  type Relay,
  samplesOf,
  signedBySendgrid,
} from '../../support/relays.ts'
import { jobsIn, storedReports } from '../../support/reports.ts'
import { anEmail, type Service, startService, world } from '../../support/service.ts'
import t from '../../support/tap.ts'

const eventsOf = (relay: Relay): Record<string, unknown>[] => samplesOf(relay).map(({ event }) => event)
const first = (relay: Relay) => eventsOf(relay)[0] ?? {}
const hoursAgo = (hours: number): Date => new Date(Date.now() - hours * 3_600_000)
const post = (raw: string | Buffer, headers: Record<string, string>): Post => ({
  raw: Buffer.from(raw),
  headers,
})
const mailgun = (body: unknown): Post => post(JSON.stringify(body), {})

const begin = async (t: Parameters<typeof startService>[0], relay: Relay): Promise<Service> => {
  const service = await startService(t)
  listenTo(service, relay)
  return service
}

for (const relay of RELAYS)
  t.test(`${relay}: valid posts store each event once, forged ones nothing`, async (t) => {
    const service = await begin(t, relay)
    t.equal(await deliver(service, post(postOf(relay, [first(relay)], hoursAgo(24.1)).raw, {})), 401)
    t.strictSame(await storedReports(service), [], 'no row')
    t.strictSame(await jobsIn(service, 'ingest-report'), [])

    const events = relay === 'mailgun' ? [first(relay)] : eventsOf(relay)
    t.equal(await deliver(service, postOf(relay, events)), 200)
    t.equal(await deliver(service, postOf(relay, events, hoursAgo(23.9))), 200, 'a repeat, in time')
    const stored = await storedReports(service)
    t.ok(stored.every(({ provider }) => provider === relay))
    const bodies = stored.map(({ body }) => JSON.stringify(JSON.parse(body.toString()))).toSorted()
    t.same(bodies, events.map((event) => JSON.stringify(event)).toSorted())
    const jobs = await jobsIn(service, 'ingest-report')
    t.equal(jobs.flatMap(({ report_id, reports = [report_id] }) => reports).length, events.length)
  })

t.test('mailgun: a token is valid for one body everywhere', async (t) => {
  const service = await begin(t, 'mailgun')
  const other = await startService(t, { url: service.url })
  listenTo(other, 'mailgun')
  const [event = {}, another = {}] = eventsOf('mailgun')
  const signature = mailgunSignature(RELAY_SECRETS.mailgun, new Date())
  const of = (data: object) => mailgun({ signature, 'event-data': data })
  const stored = async () => (await storedReports(service)).map(({ id }) => id)
  t.equal(await deliver(service, of(event)), 200)
  const first = await stored()
  t.equal(first.length, 1)
  for (const process of [service, other]) {
    t.equal(await deliver(process, of(event)), 200, 'the same body again')
    t.equal(await deliver(process, of(another)), 401, 'another event')
    t.equal(await deliver(process, of({ ...event, event: 'complained' })), 401, 'the same, changed')
  }
  t.strictSame(await stored(), first)
  t.equal((await jobsIn(service, 'ingest-report')).length, 1)
  t.equal(await deliver(other, postOf('mailgun', [another])), 200, 'a token of its own')
})

t.test('mailgun: stores one of several concurrent bodies with a token', async (t) => {
  const service = await begin(t, 'mailgun')
  const other = await startService(t, { url: service.url })
  listenTo(other, 'mailgun')
  const signature = mailgunSignature(RELAY_SECRETS.mailgun, new Date())
  const statuses = await Promise.all(
    Array.from({ length: 20 }, (_, n) =>
      deliver(
        n % 2 ? service : other,
        mailgun({ signature, 'event-data': { ...first('mailgun'), id: `e${n}` } }),
      ),
    ),
  )
  t.strictSame(statuses.toSorted(), [200, ...Array(19).fill(401)])
  t.equal((await storedReports(service)).length, 1)
})

t.test('without a relay every post is rejected', async (t) => {
  const service = await startService(t)
  for (const relay of RELAYS) t.equal(await deliver(service, postOf(relay, [first(relay)])), 401, relay)
  t.strictSame(await storedReports(service), [])
})

t.test('handles deep, large and odd posts and ten thousand events', async (t) => {
  const service = await begin(t, 'sendgrid')
  const nested = (levels: number) => `[${'['.repeat(levels)}${']'.repeat(levels)}]`
  const deep = nested(200_000)
  t.equal(await deliver(service, signedBySendgrid(Buffer.from(deep))), 400)
  t.equal(await deliver(service, signedBySendgrid(Buffer.from('[]'))), 200)
  t.equal(await deliver(service, signedBySendgrid(Buffer.alloc(11 * 1024 * 1024, ' '))), 413)
  t.strictSame(await storedReports(service), [])
  t.equal(await deliver(service, signedBySendgrid(Buffer.from(nested(33)))), 400, 'deeper than 32 levels')
  t.equal(await deliver(service, signedBySendgrid(Buffer.from(nested(32)))), 200)
  const odd = '[{"__proto__":{"event":"bounce"}},{"constructor":1},1,null,[]]'
  t.equal(await deliver(service, signedBySendgrid(Buffer.from(odd))), 200)
  const many = Array.from({ length: 10_000 }, (_, n) => ({ event: 'processed', sg_event_id: `e${n}` }))
  t.equal(await deliver(service, postOf('sendgrid', many)), 200)
  t.equal((await storedReports(service)).length, 10_006)
  listenTo(service, 'mailgun')
  t.equal(await deliver(service, mailgun({ x: 'x'.repeat(1024 * 1024) })), 413, 'before anything is proved')
  t.equal(await deliver(service, post(`{"signature":${deep},"event-data":{}}`, {})), 401)
  const now = String(Math.floor(Date.now() / 1_000))
  const key = createHmac('sha256', RELAY_SECRETS.mailgun).update(`${now}t`).digest('hex')
  const text = `{"signature":{"timestamp":${now},"token":"t","signature":"${key}"},"event-data":{"a":${deep}}}`
  t.equal(await deliver(service, post(text, {})), 401, 'too deep to be split')
})

t.test('clients can’t set the header of the relay in use', async (t) => {
  const { service, key } = await world(t)
  const send = (name: string) =>
    service.call('POST', '/v1/emails', { key, body: anEmail({ headers: { [name]: 'x' } }) })
  for (const header of Object.values(RELAY_HEADERS)) t.equal((await send(header)).status, 201, header)
  for (const relay of RELAYS) {
    const settings = { DATABASE_URL: 'postgres://x/y', SECRET_KEY: 'Zu9mohGhai4Eeraekae5' }
    const given = { ...settings, SMTP_RELAY: relay, SMTP_RELAY_SECRET: RELAY_SECRETS[relay] }
    service.deps.reservedHeaders = reservedHeaders(readApiSettings(given))
    for (const [other, header] of Object.entries(RELAY_HEADERS)) {
      const { status, body } = await send(header.toLowerCase())
      t.equal(status, other === relay ? 400 : 201, `${relay}: ${header}`)
      if (other === relay) t.match(body, { error: { code: 'invalid_headers' } })
    }
    t.equal((await send(`${RELAY_HEADERS[relay]}-more`)).status, 201, 'the one name alone')
  }
})
