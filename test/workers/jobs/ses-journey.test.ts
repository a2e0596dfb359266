/** From a send through SES to its reports through SNS. With real workers and simulated SES and SNS. */
import { randomBytes } from 'node:crypto'
import PostalMime from 'postal-mime'
import { createApp } from '../../../api/app.ts'
import { createSns } from '../../../api/hooks/sns.ts'
import { addDomain } from '../../../db/accounts/domains/add.ts'
import { deleteDomain } from '../../../db/accounts/domains/domains.sql.ts'
import { emailById } from '../../../db/messages/emails/emails.sql.ts'
import { eventsOfEmail } from '../../../db/messages/emails/events.sql.ts'
import { createSecrets } from '../../../db/process/secrets.ts'
import { createSesProvider } from '../../../workers/providers/ses/adapter.ts'
import { makeCertificate } from '../../support/certificate.ts'
import { jobsIn, setDue, storedReports } from '../../support/reports.ts'
import { anEmail, caller, listen, makeTeam, type Service, sendEmail, worldOf } from '../../support/service.ts'
import { type SesCall, type SesFault, type SesScript, startSesApi } from '../../support/ses-api.ts'
import { bounce, complaint, delivery, SES_ID, sesEvent } from '../../support/ses-events.ts'
import { shareService } from '../../support/shared-service.ts'
import { aNotification, SNS_HOST, signed, startSns, TOPIC } from '../../support/sns.ts'
import t, { type Test } from '../../support/tap.ts'
import { startWorker, until } from '../../support/worker.ts'

const renewed = await shareService(t)

const OURS = makeCertificate([SNS_HOST])

/** Starts a worker that sends through a simulated SES. */
async function work(t: Test, service: Service, onSend: SesScript['onSend'] = () => undefined) {
  const api = await startSesApi(t, { onSend })
  const email = createSesProvider({ region: 'eu-west-1', endpoint: api.url, max_connections: 50 })
  t.teardown(() => email.close())
  await startWorker(t, service, { email })
  return { api }
}

async function begin(t: Test, onSend: (call: SesCall) => SesFault | undefined = () => undefined) {
  const { service, team, send } = await worldOf(await renewed())
  const { api } = await work(t, service, onSend)
  const sns = await startSns(t, OURS)
  const gate = createSns({ topics: [TOPIC], agent: sns.agent })
  const call = caller(
    await listen(t, createApp({ ...service.deps, hooks: { ...service.deps.hooks, sns: gate } })),
  )
  /** Reports the result of a send like SES. */
  const report = async ({ tags }: SesCall, type: string, part: Record<string, unknown>) => {
    const mail = { tags: Object.fromEntries(Object.entries(tags).map(([name, value]) => [name, [value]])) }
    const Message = JSON.stringify(sesEvent(type, part, mail))
    const raw = signed(OURS, aNotification({ Message }))
    const { status } = await call('POST', '/hooks/ses', { raw, headers: { 'Content-Type': 'text/plain' } })
    if (status !== 200) throw new Error(`the hook answered ${status}`)
  }
  const statusOf = async (id: string) => (await emailById(service.database, team.id, id))?.status
  const sent = async (id: string): Promise<SesCall> => {
    const find = () => api.calls.find(({ tags }) => tags.email_id === id)
    await until('it reached SES', () => find() !== undefined)
    return find() as SesCall
  }
  return { service, team, report, send, statusOf, sent, api }
}

t.test('SES reports move an email from sent to clicked', async (t) => {
  const { service, team, report, send, statusOf, sent } = await begin(t)
  const id = await send()
  const call = await sent(id)
  await until('it is sent', async () => (await statusOf(id)) === 'sent')
  const ladder: [string, Record<string, unknown>, string][] = [
    ['Delivery', delivery(['someone@example.org']), 'delivered'],
    ['Open', { open: { timestamp: '2026-03-01T13:00:00.000Z' } }, 'opened'],
    ['Click', { click: { timestamp: '2026-03-01T13:01:00.000Z', link: 'https://example.com/' } }, 'clicked'],
    ['Delivery', delivery(['someone@example.org']), 'clicked'],
  ]
  for (const [type, part, status] of ladder) {
    await report(call, type, part)
    await until(`it is ${status}`, async () => (await statusOf(id)) === status)
  }
  await until('all is read', async () =>
    (await storedReports(service)).every(({ state }) => state === 'done'),
  )
  const events = await eventsOfEmail(service.database, team.id, id)
  t.strictSame(events.map(({ kind }) => kind).sort(), ['clicked', 'delivered', 'opened', 'sent'])
})

t.test('a complaint overrides a bounce, and not-spam does nothing', async (t) => {
  const { service, team, report, send, statusOf, sent } = await begin(t)
  const created = await service.call('POST', '/v1/contacts', {
    key: team.key,
    body: { email: 'ana@example.com' },
  })
  t.equal(created.status, 201)
  const contact = async () =>
    (await service.call('GET', '/v1/contacts/ana@example.com', { key: team.key })).body.status
  const id = await send({ to: ['ana@example.com'] })
  const call = await sent(id)
  // These two reports change nothing, so the send must be recorded before the check.
  await until('it is sent', async () => (await statusOf(id)) === 'sent')
  await report(call, 'Complaint', complaint('not-spam'))
  await report(call, 'Bounce', bounce('Permanent', 'NoEmail', [{ emailAddress: 'stranger@example.com' }]))
  await until('both are read', async () =>
    (await storedReports(service)).every(({ state }) => state !== 'pending'),
  )
  t.strictSame([await statusOf(id), await contact()], ['sent', 'subscribed'])
  await report(call, 'Bounce', bounce('Permanent', 'NoEmail'))
  await until('it bounced', async () => (await statusOf(id)) === 'bounced')
  t.equal(await contact(), 'bounced')
  await report(call, 'Complaint', complaint('abuse'))
  await until('it is complained', async () => (await statusOf(id)) === 'complained')
  t.equal(await contact(), 'complained')
})

t.test('files go through SES byte for byte, inline ones included', async (t) => {
  const { send, statusOf, sent } = await begin(t)
  const [bytes, logo] = [randomBytes(262_201), randomBytes(57)]
  const id = await send({
    html: '<img src="cid:logo">',
    text: 'Hello',
    attachments: [
      { filename: 'Grüße.pdf', content: bytes.toString('base64') },
      { filename: 'logo.png', content: logo.toString('base64'), content_id: 'logo' },
    ],
  })
  const { attachments } = await PostalMime.parse((await sent(id)).raw)
  await until('it is sent', async () => (await statusOf(id)) === 'sent')
  t.match(
    attachments.toSorted((one, other) => one.mimeType.localeCompare(other.mimeType)),
    [
      { filename: 'Grüße.pdf', mimeType: 'application/pdf', disposition: 'attachment' },
      { filename: 'logo.png', mimeType: 'image/png', disposition: 'inline', contentId: '<logo>' },
    ],
  )
  for (const { filename, content } of attachments)
    t.ok(Buffer.from(content as ArrayBuffer).equals(filename === 'logo.png' ? logo : bytes), filename ?? '')
})

t.test('an oversized SES message bounces and spares the contact', async (t) => {
  const { service, team, send, statusOf } = await begin(t, () => ({ status: 413, type: '' }))
  const contact = { email: 'someone@example.org' }
  await service.call('POST', '/v1/contacts', { key: team.key, body: contact })
  const id = await send({ attachments: [{ filename: 'a.bin', content: 'QQ==' }] })
  await until('it is bounced', async () => (await statusOf(id)) === 'bounced')
  const { body } = await service.call('GET', `/v1/contacts/${contact.email}`, { key: team.key })
  t.equal(body.status, 'subscribed')
})

t.test('a lost response isn’t repeated after SES reports it', async (t) => {
  const { service, team, report, send, statusOf, sent, api } = await begin(t, () => 'drop')
  const id = await send()
  const call = await sent(id)
  await until('its outcome is unknown', async () =>
    (await eventsOfEmail(service.database, team.id, id)).some(({ kind }) => kind === 'unknown'),
  )
  t.equal(await statusOf(id), 'queued')
  await report(call, 'Send', { send: {} })
  await until('the report is enough', async () => (await statusOf(id)) === 'sent')
  const row = await emailById(service.database, team.id, id)
  t.equal(row?.provider_message_id, SES_ID, 'the lost answer’s id is known all the same')
  await setDue(service, 'deliver-email')
  await until('the job ends by itself', async () => (await jobsIn(service, 'deliver-email')).length === 0)
  t.equal(api.calls.length, 1)
})

t.test('SES signs, so our undecryptable key delays nothing', async (t) => {
  const { service, sent } = await begin(t)
  const secrets = createSecrets('another secret key altogether')
  const other = await makeTeam({ ...service, deps: { ...service.deps, secrets } }, { domain: 'example.net' })
  const body = anEmail({ from: 'a@example.net' })
  const { id } = (await service.call('POST', '/v1/emails', { key: other.key, body })).body
  await sent(id)
})

t.test("a removed domain's email waits until it is verified", async (t) => {
  const { service, database, team, send } = await worldOf(await renewed())
  const [waiting, fine] = [await send(), await sendEmail(service, await makeTeam(service))]
  await deleteDomain(database, team.id, 'example.com')
  const { api } = await work(t, service)
  const reached = () => api.calls.map(({ tags }) => tags.email_id)
  const reasons = async () =>
    (await eventsOfEmail(database, team.id, waiting)).map(({ kind, detail }) => `${kind}: ${detail}`)
  await until('the other team’s mail of that name is sent', () => reached().includes(fine))
  await until('it is put off', async () => (await reasons()).length > 0)
  t.match((await reasons())[0], /^deferred: .*example\.com is no longer a verified domain/)

  const deps = { secrets: service.deps.secrets, now: new Date() }
  const add = (verified: boolean) =>
    database.transaction((tx) =>
      addDomain({ tx, ...deps, actor: 'cli' }, team.id, { name: 'example.com', verified }),
    )
  await add(false)
  await setDue(service, 'deliver-email')
  await until('it is put off again', async () => (await reasons()).length > 1)
  t.strictSame(reached(), [fine], 'a domain that is only pending lets nothing out')

  await deleteDomain(database, team.id, 'example.com')
  await add(true)
  await setDue(service, 'deliver-email')
  await until('it is sent', async () => (await emailById(database, team.id, waiting))?.status === 'sent')
  t.strictSame(reached(), [fine, waiting])
})
