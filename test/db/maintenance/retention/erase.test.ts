/** `contact erase`: the erased data, and the remaining data of other contacts. */
import { sql } from 'slonik'
import { array, string } from 'yup'
import { endReports, reportsByState } from '../../../../db/delivery/reports/reports.sql.ts'
import { expandStep } from '../../../../db/messages/broadcasts/expand.ts'
import { emailById } from '../../../../db/messages/emails/emails.sql.ts'
import { row } from '../../../../db/postgres/rows.ts'
import { adminCli } from '../../../support/admin.ts'
import { broadcastingOf } from '../../../support/broadcasting.ts'
import { EMPTY } from '../../../support/empty.ts'
import { erasePerson } from '../../../support/erase.ts'
import { hold } from '../../../support/held.ts'
import { storeAll } from '../../../support/ingestion.ts'
import { lockWaits, usedBy } from '../../../support/rows.ts'
import { anEmail, makeTeam, sendEmail, startService, type TestTeam } from '../../../support/service.ts'
import t from '../../../support/tap.ts'
import { happen } from '../../../support/webhooks.ts'
import { giveUpAll, until } from '../../../support/worker.ts'

const ANA = 'Ana.Diaz@example.com'

/** Replaces an erased address. */
const NOBODY = 'erased@erased.invalid'

const service = await startService(t, { publicUrl: 'https://mail.example.com' })
const { call, database, deps } = service
const cli = adminCli({ DATABASE_URL: service.url })
const erase = (team: TestTeam, email = ANA) => cli.json(['contact', 'erase', team.id, email])

const send = (team: TestTeam, to: string[]) => sendEmail(service, team, { to, text: 'Dear Ana' })

const store = (bodies: readonly string[]) =>
  storeAll(
    service,
    bodies.map((body) => Buffer.from(body)),
    'ses',
    bodies,
  )

/** Marks an email as delivered to its recipients. */
async function deliver(id: string, recipients: string[]): Promise<void> {
  await database.query(sql.unsafe`
    update email_states set status = 'delivered', provider_message_id = 'x' where id = ${id}`)
  await database.query(sql.unsafe`
    insert into email_events (team_id, email_id, event_key, kind, recipient, occurred_at, detail)
    select e.team_id, e.id, decode(md5(r), 'hex'), 'delivered', r, now(), 'taken for ' || r
    from emails e, unnest(${sql.array(recipients, 'text')}) r where e.id = ${id}`)
}

const eventsOf = (id: string) =>
  database.one(sql.type(row({ recipients: array(string().nullable()), details: string() }))`
    select array_agg(recipient order by recipient) as recipients, string_agg(detail, '') as details
    from email_events where email_id = ${id}`)

// Must be the first test, because it fails the jobs of all teams.
t.test('erases the contact from dead letters', async (t) => {
  const team = await makeTeam(service)
  const deadLetters = () =>
    database.anyFirst(sql.type(row({ words: string() }))`
      select concat_ws(' ', data, output, source_output) as words from pgboss.job where name like 'deliver-%'`)
  await send(team, [ANA])
  await giveUpAll(service, 'deliver-email', `451 4.2.1 <${ANA.toLowerCase()}> is busy`)
  const shared = await send(team, [ANA, 'ben@example.com'])
  await giveUpAll(service, 'deliver-email', `451 4.2.1 ${ANA} is busy`)
  await send(team, ['ben@example.com'])
  await giveUpAll(service, 'deliver-email', '451 4.2.1 ben@example.com is busy, xana.diaz@example.com too')
  t.match((await deadLetters()).join(), /ana\.diaz/i)
  await erase(team)
  const left = await deadLetters()
  t.notMatch(left.join().replaceAll('xana', 'x'), /ana\.diaz/i)
  t.match(left.join(), /ben@example\.com is busy, xana\.diaz@example\.com/, 'of others they stay')
  t.match(left.join(), shared, 'that of the others is tried again by redrive')
  t.match(await cli.json(['queue', 'redrive', 'deliver-email']), { redriven: 2 })
})

t.test('erases a contact from contacts, emails, events and reports', async (t) => {
  const team = await makeTeam(service)
  await call('POST', '/v1/contacts', { key: team.key, body: { email: ANA } })
  const alone = await send(team, [ANA.toLowerCase()])
  await deliver(alone, [ANA])
  const shared = await send(team, [ANA, 'ben@example.com'])
  await deliver(shared, [ANA, 'ben@example.com'])
  const waiting = await send(team, [ANA])
  const sharedWaiting = await send(team, ['ben@example.com', ANA])
  const other = await send(team, ['dana.diaz@example.com'])
  await store(['{"to":"ana.diaz@example.com"}', '{"to":"ben@example.com"}'])
  const reports = await reportsByState(database, { limit: 100 })
  await endReports(
    database,
    reports.map(({ id }) => ({ id, state: 'done' as const, reason: null, team_ids: [team.id] })),
  )

  t.strictSame(await erase(team), { contact: true, emails: 3, waiting_emails_deleted: 1, reports: 1 })
  const erased = await emailById(database, team.id, alone)
  t.match(erased, { to_emails: [NOBODY], subject: /^$/, html: /^$/, body_text: /^$/ })
  t.match(await eventsOf(alone), { recipients: [null], details: /^$/ })
  t.match(await emailById(database, team.id, shared), {
    to_emails: [NOBODY, 'ben@example.com'],
    html: '<p>Hello</p>',
  })
  t.match(await eventsOf(shared), {
    recipients: ['ben@example.com', null],
    details: 'taken for ben@example.com',
  })
  t.equal(await emailById(database, team.id, waiting), null)
  t.strictSame((await emailById(database, team.id, sharedWaiting))?.to_emails, ['ben@example.com'])
  t.strictSame((await emailById(database, team.id, other))?.to_emails, ['dana.diaz@example.com'])
  t.match(await usedBy(service, team.id), { emails: 4, contacts: 0 })
  t.equal((await call('GET', `/v1/contacts/${ANA}`, { key: team.key })).status, 404)
  t.strictSame(await erase(team), { contact: false, emails: 0, waiting_emails_deleted: 0, reports: 0 })
})

t.test('later events of an erased email have no text', async (t) => {
  const team = await makeTeam(service)
  await database.query(sql.unsafe`
    insert into webhook_endpoints (team_id, id, url, name, types, secret, state, created_at)
    values (${team.id}, gen_random_uuid(), 'https://hooks.example.com/', 'hooks', '{*}', '', 'enabled', now())`)
  const alone = await send(team, [ANA])
  const shared = await send(team, [ANA, 'ben@example.com'])
  for (const id of [alone, shared]) await deliver(id, [])
  await erase(team)
  for (const email_id of [alone, shared]) {
    const detail = `https://shop.example.com/?for=${email_id === alone ? ANA : 'anybody'}`
    await happen(service, { team_id: team.id, email_id, kind: 'clicked', detail })
  }
  t.match(await emailById(database, team.id, alone), { status: 'clicked' })
  t.strictSame(await eventsOf(alone), { recipients: [null], details: '' })
  t.strictSame((await eventsOf(shared)).details, 'https://shop.example.com/?for=anybody')
  const heard = await database.any(sql.type(row({ body: string() }))`
    select body from webhook_messages where team_id = ${team.id} order by id`)
  t.match(
    heard.map(({ body }) => JSON.parse(body).data),
    [
      { email_id: alone, recipient: null, detail: /^$/ },
      { email_id: shared, detail: /anybody$/ },
    ],
  )
})

t.test("only matches complete addresses, and the team's own reports", async (t) => {
  const team = await makeTeam(service)
  const other = await makeTeam(service)
  const shared = await send(team, ['a@x.example', 'anna@x.example', "o'neil@x.example"])
  await deliver(shared, ['a@x.example', 'anna@x.example', "o'neil@x.example"])
  const settled = [
    ['refused <na@x.example>', [team.id]],
    ['{"words":"To:\\nna@x.example."}', [team.id]],
    ['refused <anna@x.example>', [team.id]],
    ['refused <na@x.example.org>', [team.id]],
    ['refused na@x.example', [other.id]],
    ['parked na@x.example', []],
  ] as const
  await store(settled.map(([body]) => body))
  const ids = new Map(
    (await reportsByState(database, { limit: 100 })).map(({ id, event_key }) => [event_key, id]),
  )
  await endReports(
    database,
    settled.map(([body, team_ids]) => ({
      id: ids.get(body) ?? '',
      state: 'parked' as const,
      reason: 'x',
      team_ids,
    })),
  )
  const nobody = { contact: false, emails: 0, waiting_emails_deleted: 0 }
  t.strictSame(await erase(team, 'na@x.example'), { ...nobody, reports: 2 })
  const left = await reportsByState(database, { limit: 100 })
  const keys = new Set(left.map(({ event_key }) => event_key))
  const kept = settled.map(([body]) => body).filter((body) => keys.has(body))
  const others = settled.slice(2).map(([body]) => body)
  t.strictSame(kept, others)
  t.strictSame(await erase(team, 'neil@x.example'), { ...nobody, reports: 0 })
  await erase(team, 'a@x.example')
  t.match(await eventsOf(shared), {
    recipients: ['anna@x.example', "o'neil@x.example", null],
    details: /taken for anna@x\.example/,
  })
})

t.test('removes an erased contact from the skips of broadcasts', async (t) => {
  const { team, create, post, contacts, get } = await broadcastingOf(service, await makeTeam(service))
  await contacts(['Ana.Diaz', 'ben'], { country: 'FR' })
  const id = await create()
  await post(id, 'send')
  const brakes = { bounce_percent: 5, complaint_percent: 0.1 }
  await database.transaction((tx) => expandStep({ ...deps, tx, ahead: 5, brakes }, team.id, id))
  await cli.json(['contact', 'erase', team.id, 'ana.diaz@example.org'])
  t.match(await cli.json(['broadcast', 'skips', team.id, id]), [
    { email: /^$/, reason: 'variables', detail: /^$/ },
    { email: 'ben@example.org', reason: 'variables', detail: 'no value for name' },
  ])
  t.match((await get(id)).body, { stats: { made: 0, skipped: 2 } })
})

t.test("a report waiting for an erasure doesn't contain the address", async (t) => {
  const team = await makeTeam(service)
  const id = await send(team, [ANA, 'ben@example.com'])
  await deliver(id, [])
  const waiting = (count: number) => until(`${count} wait`, async () => (await lockWaits(service)) === count)
  const commit = await hold(t, database, (tx) =>
    tx.query(sql.unsafe`select from email_states where id = ${id} for update`),
  )
  const { queue, secrets } = deps
  const erasing = erasePerson({ database, queue, secrets }, team.id, ANA.toLowerCase())
  await waiting(1)
  const event = { team_id: team.id, email_id: id, kind: 'bounced', detail: 'full' } as const
  const both = [ANA, 'ben@example.com']
  const reported = happen(
    service,
    ...both.map((recipient) => ({ ...event, recipient, event_key: recipient })),
  )
  await waiting(2)
  await Promise.all([commit(), erasing])
  t.match(await reported, [{ kind: 'ignored' }, { kind: 'applied' }])
  t.strictSame((await eventsOf(id)).recipients, ['ben@example.com'])
})

t.test('erases keys, tags, reply addresses and broadcast tests', async (t) => {
  const { team, create, post } = await broadcastingOf(service, await makeTeam(service))
  const { key } = team
  const address = ANA.toLowerCase()
  await call('POST', '/v1/contacts', {
    key,
    body: { email: ANA, properties: { name: 'Ana Diaz', iban: 'AT48' } },
  })
  const named = { reply_to: ANA, tags: ['welcome', `to:${address}`], idempotency_key: `welcome:${address}` }
  const { body: sent } = await call('POST', '/v1/emails', { key, body: anEmail({ to: [ANA], ...named }) })
  const first = { to: [ANA, 'ben@example.com'], idempotency_key: 'order-1' }
  const second = { to: ['ana.diaz@example.com.au'], tags: ['x'], idempotency_key: 'order-2' }
  const [shared, other] = [
    await sendEmail(service, { key }, first),
    await sendEmail(service, { key }, second),
  ]
  const broadcast = await create({ tags: [`about ${address}`] })
  const test = async (to: string) => {
    const { body } = await post(broadcast, 'test', { to: [to], contact: ANA })
    return body.data[0].id as string
  }
  const [tried, waiting] = [await test('me@example.org'), await test('you@example.org')]
  for (const id of [sent.id, tried]) await deliver(id, ['me@example.org'])
  await erasePerson({ ...deps, database }, team.id, address)
  t.match(await emailById(database, team.id, sent.id), {
    ...{ to_emails: [NOBODY], reply_to: /^$/, tags: ['welcome'], idempotency_key: null },
  })
  t.match(await emailById(database, team.id, tried), {
    ...{ to_emails: ['me@example.org'], subject: /^$/, variables: EMPTY, tags: EMPTY },
  })
  t.match(await eventsOf(tried), { recipients: ['me@example.org'] }, 'its recipient keeps the event')
  t.equal(await emailById(database, team.id, waiting), null, 'a test that waits is not sent any more')
  t.match(await emailById(database, team.id, shared), { idempotency_key: 'order-1' })
  t.match(await emailById(database, team.id, other), { tags: ['x'], idempotency_key: 'order-2' })
  const rows = await database.any(sql.type(row({ row: string() }))`
    select to_jsonb(e)::text as row from accepted_emails e where team_id = ${team.id} and id <> ${other}`)
  for (const { row } of rows) t.notMatch(row, /ana\.diaz|Ana Diaz|AT48/i)
})

t.test('a broadcast creates no email for an erased contact', async (t) => {
  const { team, create, post, contacts, get } = await broadcastingOf(service, await makeTeam(service))
  await contacts(['Ana.Diaz', 'ben'])
  const id = await create()
  await post(id, 'send')
  const commit = await hold(t, database, (tx) =>
    tx.query(sql.unsafe`lock table template_versions in access exclusive mode`),
  )
  const brakes = { bounce_percent: 5, complaint_percent: 0.1 }
  const walking = database.transaction((tx) => expandStep({ ...deps, tx, ahead: 5, brakes }, team.id, id))
  await until('it has picked them', async () => (await lockWaits({ database })) > 0)
  await cli.json(['contact', 'erase', team.id, 'ana.diaz@example.org'])
  await commit()
  await walking
  t.match((await get(id)).body, { stats: { made: 1, skipped: 0 } })
  const rows = await database.any(sql.type(row({ row: string() }))`
    select to_jsonb(e)::text as row from accepted_emails e where team_id = ${team.id}`)
  t.equal(rows.length, 1)
  for (const { row } of rows) t.notMatch(row, /ana\.diaz/i)
})

t.test('erases webhooks about deleted subjects of that contact only', async (t) => {
  const team = await makeTeam(service)
  const { key } = team
  await cli.json(['webhook', 'add', team.id, '--url', 'https://example.com/hook'])
  // More than one slice reads, with IDs before all others.
  await database.query(sql.unsafe`
    insert into webhook_messages (team_id, id, endpoint_id, event_id, type, body, status, created_at)
    select ${team.id}, ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, gen_random_uuid(),
      gen_random_uuid(), 'webhook.test', '{}', 'delivered', now() from generate_series(1, 600) n`)
  for (const email of [ANA, 'ben@example.com']) {
    await call('POST', '/v1/contacts', { key, body: { email } })
    await call('POST', `/v1/contacts/${email}/unsubscribe`, { key })
    await call('DELETE', `/v1/contacts/${email}`, { key })
    const id = await send(team, [`Somebody <${email}>`])
    await happen(service, {
      team_id: team.id,
      email_id: id,
      kind: 'bounced',
      recipient: email,
      detail: 'full',
    })
    await cli.json(['email', 'delete', team.id, id])
  }
  await call('POST', '/v1/contacts', { key, body: { email: ANA } })
  const bodies = () =>
    database.anyFirst(sql.type(row({ body: string() }))`select body from webhook_messages
      where team_id = ${team.id} and type <> 'webhook.test' order by id`)
  const about = (email: string) => [
    new RegExp(`^{"type":"contact.unsubscribed".*"email":"${email}"`),
    new RegExp(`^{"type":"email.bounced".*"to":."Somebody <${email}>"`),
  ]
  t.match(await bodies(), [...about(ANA), ...about('ben@example.com')])
  const exported = await cli.json(['contact', 'export', team.id, ANA])
  t.match(exported.webhooks, [
    { type: 'contact.unsubscribed', status: 'queued' },
    { type: 'email.bounced', status: 'queued' },
  ])
  t.notMatch(JSON.stringify(exported), /ben@/)
  await erase(team)
  t.match(await bodies(), about('ben@example.com'))
  t.equal((await bodies()).length, 2)
})
