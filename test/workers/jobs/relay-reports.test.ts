/** The effects of hosted relays' reports on rows, timelines, contacts. Real hook, real queue, real worker. */
import { sql } from 'slonik'
import { object, string } from 'yup'
import { signedReference } from '../../../db/messages/emails/return-path.ts'
import { createSecrets } from '../../../db/process/secrets.ts'
import { createWorkerStats } from '../../../workers/monitoring/stats.ts'
import { adminCli } from '../../support/admin.ts'
import { shows, signedIn } from '../../support/dashboard.ts'
import { SECRET_KEY } from '../../support/environment.ts'
import { settled } from '../../support/ingestion.ts'
import { relayDay } from '../../support/relay-day.ts'
import { deliver, eventAbout, listenTo, postOf, RELAYS, type Relay, samplesOf } from '../../support/relays.ts'
import {
  contactState,
  emailStatus,
  eventsOf,
  setProviderId,
  storeContact,
  storedReports,
  storeEmails,
} from '../../support/reports.ts'
import { METRICS_TOKEN, makeTeam, type Service, sendEmail, worldOf } from '../../support/service.ts'
import { shareService } from '../../support/shared-service.ts'
import t, { type Test } from '../../support/tap.ts'
import { startWorker, until } from '../../support/worker.ts'

const renewed = await shareService(t)

/** Events per day. The long form uses 10,000. */
const EVENTS = Number(process.env.RELAY_EVENTS ?? 400)

const secrets = createSecrets(SECRET_KEY)

const sampleOf = (relay: Relay, is: string) => {
  const found = samplesOf(relay).find((sample) => sample.is === is)
  if (!found) throw new Error(`${relay} has no sample that is ${is}`)
  return found.event
}

async function begin(t: Test, relay: Relay) {
  const { service, team_id: team, key } = await worldOf(await renewed())
  listenTo(service, relay)
  await startWorker(t, service, { stats: createWorkerStats(service.deps.metrics, 1) })
  let moment = Date.now() - 3_600_000
  const post = async (id: string, is: string, recipient: string) => {
    moment += 1_000
    const about = {
      recipient,
      at: new Date(moment),
      reference: signedReference(secrets, { team_id: team, id }),
    }
    const given = { ...about, id: `e${moment}` }
    const status = await deliver(service, postOf(relay, [eventAbout(relay, sampleOf(relay, is), given)]))
    if (status !== 200) throw new Error(`the hook answers ${status}`)
  }
  return { service, team, key, post }
}

const read = (service: Service) => until('all is read', () => settled(service))

for (const relay of RELAYS)
  t.test(`${relay}: each of several recipients counts separately`, async (t) => {
    const { service, team, post } = await begin(t, relay)
    for (const name of ['ana', 'bea', 'cyd', 'eve']) await storeContact(service, team, `${name}@example.org`)
    const to = ['Ana <ana@example.org>', 'bea@example.org', 'cyd@example.org']
    const [id = ''] = await storeEmails(service, team, [to])
    await post(id, 'delayed none', 'bea@example.org')
    await post(id, 'bounced hard', 'eve@example.org')
    await read(service)
    t.equal(await emailStatus(service, id), 'queued', 'a delay and a stranger move nothing')
    await post(id, 'delivered delivered', 'bea@example.org')
    await read(service)
    t.equal(await emailStatus(service, id), 'delivered')
    await post(id, 'bounced hard', 'ANA@example.org')
    await post(id, 'complained complaint', 'cyd@example.org')
    await read(service)
    t.equal(await emailStatus(service, id), 'complained')
    const states = { ana: 'bounced', bea: 'subscribed', cyd: 'complained', eve: 'subscribed' }
    for (const [name, status] of Object.entries(states))
      t.match(await contactState(service, team, `${name}@example.org`), { status }, name)
    const said = await eventsOf(service, id)
    t.ok(
      said.every(({ detail }) => detail.startsWith(`${relay}: `)),
      'the timeline says who said so',
    )
    t.same(said.map(({ kind }) => kind).toSorted(), ['bounced', 'complained', 'delayed', 'delivered'])
    const shown = await adminCli({ DATABASE_URL: service.url }).json(['email', 'show', team, id])
    for (const { detail } of shown.events) t.match(detail, new RegExp(`^${relay}: `))
    await until('the reports are counted under the relay’s name', async () => {
      const { body } = await service.call('GET', '/metrics', { key: METRICS_TOKEN })
      return body.includes(`heliograph_reports_total{provider="${relay}",outcome="applied"} 4\n`)
    })
  })

t.test('an unsubscribe of an unknown contact is stored', async (t) => {
  const { service, team, key, post } = await begin(t, 'mailgun')
  const [id = ''] = await storeEmails(service, team, [['ana@example.org', 'bea@example.org']])
  await post(id, 'unsubscribed unsubscribe', 'Ana@example.org')
  await read(service)
  const created = async (email: string) =>
    (await service.call('POST', '/v1/contacts', { key, body: { email } })).body.status
  t.equal(await created('ana@example.org'), 'unsubscribed')
  t.equal(await created('bea@example.org'), 'subscribed')
})

t.test('the email’s page names the relay before its response', async (t) => {
  const { service, team } = await worldOf(await renewed())
  listenTo(service, 'mailgun')
  await startWorker(t, service, { pauses: async (job) => job === 'deliver-email' })
  const id = await sendEmail(service, team)
  const about = {
    ...{ recipient: 'someone@example.org', at: new Date(), id: 'e1' },
    reference: signedReference(secrets, { team_id: team.id, id }),
  }
  await deliver(
    service,
    postOf('mailgun', [eventAbout('mailgun', sampleOf('mailgun', 'bounced hard'), about)]),
  )
  await read(service)
  const viewer = await signedIn(service, { team: team.id, role: 'viewer' })
  shows(t, await viewer.get(`/teams/${team.id}/emails/${id}`), /Bounced.*mailgun: \S/s)
})

for (const relay of RELAYS)
  t.test(`${relay}: the fifth consecutive soft bounce suppresses a contact`, async (t) => {
    const { service, team, post } = await begin(t, relay)
    await storeContact(service, team, 'ana@example.org')
    const ids = await storeEmails(service, team, Array(13).fill(['ana@example.org']))
    for (const id of ids.slice(0, 4)) await post(id, 'bounced soft', 'ana@example.org')
    for (const id of ids.slice(4, 8)) await post(id, 'bounced none', 'ana@example.org')
    for (const id of ids.slice(8, 12)) await post(id, 'delayed none', 'ana@example.org')
    await read(service)
    t.match(await contactState(service, team, 'ana@example.org'), { status: 'subscribed' }, relay)
    t.equal(await emailStatus(service, ids[0] ?? ''), 'bounced')
    t.equal(await emailStatus(service, ids[4] ?? ''), 'bounced')
    t.equal(await emailStatus(service, ids[8] ?? ''), 'queued')
    await post(ids[12] ?? '', 'bounced soft', 'ana@example.org')
    await read(service)
    t.match(await contactState(service, team, 'ana@example.org'), { status: 'bounced' }, relay)
  })

t.test('an event without the reference is matched by its Message-ID', async (t) => {
  const { service, team } = await begin(t, 'sendgrid')
  const [id = ''] = await storeEmails(service, team, [['ana@example.org']])
  await setProviderId(service, id, `${id}@example.com`)
  const event = { ...sampleOf('sendgrid', 'delivered delivered'), email: 'ana@example.org' }
  const processed = sampleOf('sendgrid', 'nothing')
  t.equal(
    await deliver(service, postOf('sendgrid', [{ ...event, 'smtp-id': `<${id}@example.com>` }, processed])),
    200,
  )
  await read(service)
  t.equal(await emailStatus(service, id), 'delivered')
  t.same(new Set((await storedReports(service)).map(({ state }) => state)), new Set(['done']))
})

const rowsOf = async ({ database }: Service, table: 'emails' | 'contacts') =>
  new Map(
    (
      await database.any(sql.type(object({ key: string().defined(), status: string().defined() }))`
        select ${table === 'emails' ? sql.fragment`id::text` : sql.fragment`email`} as key, status
        from ${sql.identifier([table])}`)
    ).map(({ key, status }) => [key, status]),
  )

for (const [seed, relay] of RELAYS.entries())
  t.test(`${relay}: a day of shuffled, repeated and forged reports ends in the right states`, async (t) => {
    const service = await renewed()
    listenTo(service, relay)
    const { id: team } = await makeTeam(service)
    const lists = Array.from({ length: Math.ceil(EVENTS / 8) }, (_, n) =>
      Array.from({ length: 1 + (n % 3) }, (_, m) => `p${n}-${m}@example.org`),
    )
    for (const address of lists.flat()) await storeContact(service, team, address)
    const ids = await storeEmails(service, team, lists)
    const emails = lists.map((to, n) => ({ id: ids[n] ?? '', team_id: team, to }))
    const day = relayDay(relay, { emails, secrets, count: EVENTS, seed: seed + 1 })
    await startWorker(t, service)
    const left = [...day.posts]
    const answers = new Map<number, number>()
    const poster = async (): Promise<void> => {
      for (let post = left.pop(); post; post = left.pop()) {
        const status = await deliver(service, post)
        answers.set(status, (answers.get(status) ?? 0) + 1)
      }
    }
    await Promise.all(Array.from({ length: 8 }, poster))
    t.same([...answers.keys()].toSorted(), [200, 401])
    t.equal(answers.get(401), day.forged, 'each forged one, and no other, is refused')
    await until('all is read', () => settled(service), 300)
    const reports = await storedReports(service)
    t.equal(reports.length, day.events, 'each event is there once')
    t.same(new Set(reports.map(({ state }) => state)), new Set(['done']))
    t.same(await rowsOf(service, 'emails'), day.statuses)
    t.same(await rowsOf(service, 'contacts'), day.contacts)
  })
