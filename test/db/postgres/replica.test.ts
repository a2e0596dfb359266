/** Reads that can lag use a streaming standby. All other reads and all writes use the primary. */
import { PAGES } from '../../../api/dashboard/routes.ts'
import { createReplica } from '../../../db/postgres/replica.ts'
import { startReplica } from '../../../db/start.ts'
import { fillContacts } from '../../support/contacts.ts'
import { signedIn } from '../../support/dashboard.ts'
import { testDatabase } from '../../support/database.ts'
import { openPool } from '../../support/pool.ts'
import { METRICS_TOKEN, sendEmail, world } from '../../support/service.ts'
import { type Pair, startPair } from '../../support/standby.ts'
import t, { type Test } from '../../support/tap.ts'
import { until } from '../../support/worker.ts'

/** Collects the log messages about the replica. */
function listener() {
  const heard: string[] = []
  const hear = (what: { reason?: string }, words: string) => void heard.push(`${words} ${what.reason ?? ''}`)
  return { heard, log: { warn: hear, info: hear } }
}

/** A service with a standby, and an owner with a dashboard session. */
async function begin(t: Test, pair: Pair) {
  const { heard, log } = listener()
  const primary = await openPool(t, pair.primary, { size: 2 })
  const replica = await createReplica(pair.standby, { primary, log, options: { size: 2 } })
  t.teardown(() => replica.end())
  const { service, team } = await world(t, { url: pair.primary, replica })
  const owner = await signedIn(service, { team: team.id, role: 'owner', operator: true })
  const addContact = async (email: string) => {
    const { status } = await service.call('POST', '/v1/contacts', { key: team.key, body: { email } })
    if (status !== 201) throw new Error(`no contact: ${status}`)
  }
  const contacts = async () => (await owner.get(`/teams/${team.id}/contacts`)).html
  return { heard, service, team, owner, addContact, contacts }
}

t.test('only reads that may be stale use the standby', async (t) => {
  const pair = await startPair(t)
  const { heard, service, team, owner, addContact, contacts } = await begin(t, pair)
  const path = `/teams/${team.id}`
  // More than one batch of a file.
  await fillContacts(service, team.id, 600)
  await addContact('early@example.com')
  await pair.freeze()
  await addContact('late@example.com')
  const sent = await sendEmail(service, team)

  await t.test('lists and CSV files lag as the standby does', async (t) => {
    for (const page of ['contacts', 'contacts.csv']) {
      const { html } = await owner.get(`${path}/${page}`)
      t.match(html, /early@example\.com/, page)
      t.notMatch(html, /late@example\.com/, page)
    }
    for (const page of ['emails', 'emails.csv'])
      t.notMatch((await owner.get(`${path}/${page}`)).html, sent, page)
  })

  await t.test('users get complete files despite sessions missing on the standby', async (t) => {
    const newcomer = await signedIn(service, { team: team.id, role: 'viewer' })
    const { html } = await newcomer.get(`${path}/contacts.csv`)
    t.match(html, /(^|,)person1@example\.org/m)
  })

  await t.test("the API and single messages' pages don't use the standby", async (t) => {
    const listed = await service.call('GET', '/v1/contacts', { key: team.key })
    const emails = listed.body.data.map(({ email }: { email: string }) => email)
    t.match(emails, ['late@example.com', 'early@example.com'])
    t.equal((await owner.get(`${path}/emails/${sent}`)).status, 200)
    const { status } = await owner.post(`${path}/contacts`, { email: 'own@example.com' })
    t.equal(status, 303)
    const { html } = await owner.get(`${path}/contacts`)
    t.match(html, /own@example\.com/)
    t.match(html, /late@example\.com/)
  })

  await t.test('/metrics reads only waiting messages from the standby', async (t) => {
    const { body } = await service.call('GET', '/metrics', { key: METRICS_TOKEN })
    t.match(body, /^heliograph_queued_messages\{channel="email",older_than_seconds="0"\} 0$/m)
    t.match(body, /^heliograph_accepted_total\{channel="email"\} 1$/m)
  })

  await t.test('no page that reads from the replica writes', async (t) => {
    const fromReplica = PAGES.filter((page) => page.fromReplica)
    t.ok(fromReplica.length >= 9)
    t.ok(fromReplica.every(({ method }) => method === 'GET'))
    for (const page of fromReplica) {
      const { status } = await owner.get(page.path.replace(':team', team.id).replace(':id', sent))
      t.ok(status === 200 || status === 404, `${page.path}: ${status}`)
    }
    t.strictSame(heard, [])
  })

  await t.test('uses the primary during standby outages, logged once', async (t) => {
    await pair.away()
    t.match(await contacts(), /late@example\.com/)
    t.match(await contacts(), /late@example\.com/)
    t.equal((await service.call('GET', '/metrics', { key: METRICS_TOKEN })).status, 200)
    t.match(heard, [/^DATABASE_REPLICA_URL can't be used, so reads use the primary/])
    t.equal(heard.length, 1)
  })

  await t.test('uses the standby again after the outage', async (t) => {
    await pair.back()
    await until('it is read from', async () => {
      await contacts()
      return heard.length === 2
    })
    t.match(heard[1], /reading from DATABASE_REPLICA_URL again/)
    await pair.freeze()
    await addContact('later@example.com')
    t.notMatch(await contacts(), /later@example\.com/)
    await pair.thaw()
    t.match(await contacts(), /later@example\.com/)
  })

  await t.test("doesn't use a server that isn't a standby", async (t) => {
    const { heard, log } = listener()
    const options = { primary: service.database, log, options: { size: 1 } }
    const replica = await startReplica(pair.primary, options)
    t.teardown(() => replica.end())
    t.match(heard, [/it is not a standby/])
    t.equal(await replica.read(service.database, async (database) => database), service.database)
    const { url } = await testDatabase(t)
    await t.rejects(startReplica(url, options), {
      message: /DATABASE_REPLICA_URL can't be used: it is not a replica of the database in DATABASE_URL/,
    })
  })
})
