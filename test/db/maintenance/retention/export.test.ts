/**
 * An export contains all data that an erasure of the contact would find, and no data of others. DECISIONS:
 * Erase.
 */
import { sql } from 'slonik'
import { auditEntries } from '../../../../db/accounts/audit/audit.sql.ts'
import { endReports, reportsByState } from '../../../../db/delivery/reports/reports.sql.ts'
import { exportPerson } from '../../../../db/maintenance/retention/export.ts'
import { countRow } from '../../../../db/postgres/rows.ts'
import { adminCli } from '../../../support/admin.ts'
import { beginBroadcasting } from '../../../support/broadcasting.ts'
import { signedIn } from '../../../support/dashboard.ts'
import { EMPTY } from '../../../support/empty.ts'
import { erasePerson } from '../../../support/erase.ts'
import { storeAll } from '../../../support/ingestion.ts'
import { makeTeam, sendEmail, sendEmails } from '../../../support/service.ts'
import t, { type Test } from '../../../support/tap.ts'

const ANA = 'Ana.Diaz@example.com'
const IDENTITY = ANA.toLowerCase()
const OTHERS = /ben@example|ben\.berg|colleague@example|Ben Berg|anna\.diaz/i

/** A team with data about Ana in every table, mostly together with data about others. */
async function start(t: Test) {
  const { service, team, create, post } = await beginBroadcasting(t)
  const { call, database, deps, url } = service
  const { key } = team
  const send = (to: string[], more = {}) => sendEmail({ call }, { key }, { to, ...more })
  await call('POST', '/v1/contacts', { key, body: { email: ANA, properties: { name: 'Ana Diaz' } } })
  await call('POST', '/v1/contacts', {
    key,
    body: { email: 'ben@example.com', properties: { name: 'Ben Berg' } },
  })
  const contact = (await call('GET', `/v1/contacts/${ANA}`, { key })).body
  const sole = await send([ANA], { subject: 'To Ana', html: '<p>Secret of Ana</p>', tags: ['welcome'] })
  const shared = await send(['Ben Berg <ben@example.com>', `Ana <${ANA}>`], {
    subject: 'To Ben Berg and Ana',
  })
  const waiting = await send([ANA], { subject: 'Later' })
  const at = new Date(Date.now() + 3_600_000).toISOString()
  const times = { scheduled_at: at, expires_in: 600 }
  const timed = await send([ANA], { subject: 'At its time', ...times })
  const copied = await send(['ben@example.com'], { cc: [`Ana <${ANA}>`], bcc: ['colleague@example.org'] })
  const blind = await send(['Ben Berg <ben@example.com>'], {
    ...{ cc: ['colleague@example.org'], bcc: [ANA], subject: 'To Ben Berg at its time', ...times },
  })
  await send(['ben@example.com', 'anna.diaz@example.com'])
  const happen = (id: string, recipient: string | null, detail: string) =>
    database.query(sql.unsafe`
      insert into email_events (team_id, email_id, event_key, kind, recipient, occurred_at, detail)
      values (${team.id}, ${id}, decode(md5(${`${recipient}${detail}`}), 'hex'), 'bounced', ${recipient}, now(), ${detail})`)
  for (const id of [sole, shared])
    await database.query(sql.unsafe`
      update email_states set status = 'delivered', provider_message_id = 'x' where id = ${id}`)
  await happen(sole, ANA, '550 no such user')
  await happen(shared, ANA, `550 ${IDENTITY}: no such user (nor ben@example.com)`)
  await happen(shared, 'ben@example.com', '552 the mailbox of ben@example.com is full')
  await happen(shared, null, `<${IDENTITY}>, <ben@example.com>: greylisted`)
  await happen(copied, ANA, '550 no such user')
  await happen(copied, 'colleague@example.org', '552 full')
  const broadcast = await create({})
  const { body: test } = await post(broadcast, 'test', { to: ['colleague@example.org'], contact: ANA })
  await database.query(sql.unsafe`
    insert into broadcast_skips (team_id, broadcast_id, contact_id, email, reason, detail, at)
    values (${team.id}, ${broadcast}, ${contact.id}, ${ANA}, 'variables', 'no value for name', now()),
      (${team.id}, ${broadcast}, gen_random_uuid(), 'ben@example.com', 'variables', 'x', now())`)
  const endpoint = crypto.randomUUID()
  for (const subject of [contact.id, sole, shared, test.data[0].id])
    await database.query(sql.unsafe`
      insert into webhook_messages (team_id, id, endpoint_id, event_id, type, subject_id, body, status, created_at)
      values (${team.id}, gen_random_uuid(), ${endpoint}, gen_random_uuid(), 'email.bounced', ${subject},
        '{"to":["ben@example.com"]}', 'delivered', now())`)
  for (const recipient of [IDENTITY, 'ben@example.com'])
    await database.query(sql.unsafe`
      insert into webhook_messages (team_id, id, endpoint_id, event_id, type, subject_id, body, status, created_at)
      values (${team.id}, gen_random_uuid(), ${endpoint}, gen_random_uuid(), 'email.opened', ${copied},
        ${JSON.stringify({ data: { recipient } })}, 'delivered', now())`)
  const bodies = [`{"to":["${IDENTITY}","ben@example.com"]}`, '{"to":"ben@example.com"}']
  await storeAll(
    service,
    bodies.map((body) => Buffer.from(body)),
    'ses',
    bodies,
  )
  await endReports(
    database,
    (await reportsByState(database, { limit: 10 })).map(({ id }) => ({
      ...{ id, state: 'done' as const, reason: null, team_ids: [team.id] },
    })),
  )
  const cli = adminCli({ DATABASE_URL: url })
  const by = { database, secrets: deps.secrets, now: new Date(), actor: 'cli' }
  return {
    ...{
      service,
      team,
      database,
      deps,
      contact,
      sole,
      shared,
      waiting,
      ...{ timed, copied, blind, at },
      test: test.data[0].id,
      broadcast,
      cli,
      by,
    },
  }
}

t.test("contact export contains the contact's data and no other recipients", async (t) => {
  const { team, cli, contact, sole, shared, waiting, timed, copied, blind, at, test, broadcast } =
    await start(t)
  const found = await cli.json(['contact', 'export', team.id, ANA])
  t.strictSame(Object.keys(found), [
    ...[
      'email',
      'exported_at',
      'contact',
      'emails',
      'tests',
      'broadcast_skips',
      'suppressions',
      'webhooks',
      'reports',
    ],
  ])
  const person = found.contact
  t.match(person, { id: contact.id, email: ANA, properties: { name: 'Ana Diaz' }, left_topic_ids: EMPTY })
  t.equal(found.contact.webhooks.length, 1)
  const exported = found.emails.map(({ id }: { id: string }) => id).sort()
  t.strictSame(exported, [sole, shared, waiting, timed, copied, blind].sort())
  const of = (id: string) => found.emails.find((each: { id: string }) => each.id === id)
  t.match(of(sole), {
    ...{ to: [ANA], subject: 'To Ana', html: '<p>Secret of Ana</p>', status: 'delivered', tags: ['welcome'] },
    events: [{ kind: 'bounced', recipient: ANA, detail: '550 no such user' }],
  })
  t.match(of(shared), { to: [/^.{0,5}Ana.{0,2} <Ana\.Diaz@example\.com>$/] })
  for (const name of ['subject', 'html', 'status']) t.notOk(name in of(shared), name)
  t.strictSame(
    of(shared)
      .events.map(({ recipient, detail }: { recipient: string | null; detail: string }) => [
        recipient,
        detail,
      ])
      .sort(),
    [
      [ANA, `550 ${IDENTITY}: no such user (nor …)`],
      [null, `<${IDENTITY}>, <…>: greylisted`],
    ].sort(),
  )
  const end = new Date(Date.parse(at) + 600_000).toISOString()
  const email = of(timed)
  t.match(email, { to: [ANA], subject: 'At its time', scheduled_at: at, expires_at: end, status: 'queued' })
  t.notOk('scheduled_at' in of(sole) || 'expires_at' in of(sole))
  const { created_at: _, from: __, ...places } = of(blind)
  t.strictSame(places, {
    ...{ id: blind, scheduled_at: at, expires_at: end, broadcast_id: null, template_id: null },
    ...{ to: [], bcc: [ANA], events: [], webhooks: [] },
  })
  t.strictSame([of(copied).to, of(copied).cc, 'bcc' in of(copied)], [[], [`Ana <${ANA}>`], false])
  t.match(of(copied).events, [{ recipient: ANA, detail: '550 no such user' }])
  t.equal(of(copied).events.length, 1)
  const types = of(copied)
    .webhooks.map(({ type }: { type: string | null }) => type)
    .sort()
  t.strictSame(types, ['email.opened', null].sort(), 'not even what has become of others')
  t.match(found.tests, [{ id: test, webhooks: [{ type: 'email.bounced' }] }])
  t.match(found.broadcast_skips, [{ broadcast_id: broadcast, email: ANA, reason: 'variables' }])
  t.match(found.reports, [{ provider: 'ses', bytes: Number }])
  t.equal(found.reports.length, 1)
  t.notMatch(JSON.stringify(found), OTHERS)
})

t.test('export finds the same rows as an erasure', async (t) => {
  const { team, database, deps, by } = await start(t)
  const webhooks = () => database.oneFirst(sql.type(countRow)`select count(*) as count from webhook_messages`)
  const skips = () =>
    database.oneFirst(sql.type(countRow)`select count(*) as count from broadcast_skips where email <> ''`)
  const tests = () =>
    database.oneFirst(sql.type(countRow)`
      select count(*) as count from accepted_emails where broadcast_id is null and person is not null`)
  const before = { webhooks: await webhooks(), skips: await skips(), tests: await tests() }
  // biome-ignore lint/suspicious/noExplicitAny: the test looks into the file as its reader would
  const found = (await exportPerson(by, team.id, IDENTITY)) as any
  const erased = await erasePerson(deps, team.id, IDENTITY)
  t.strictSame(erased, {
    contact: found.contact !== null,
    emails: found.emails.length - 2,
    waiting_emails_deleted: 2,
    reports: found.reports.length,
  })
  const shown = [found.contact, ...found.emails, ...found.tests].flatMap((each) => each.webhooks)
  t.equal(before.webhooks - (await webhooks()), shown.length)
  t.equal(before.skips - (await skips()), found.broadcast_skips.length)
  t.equal(before.tests - (await tests()), found.tests.length)
  await t.rejects(exportPerson(by, team.id, IDENTITY), { code: 'contact_not_found' })
})

t.test("an unknown address or another team's is contact_not_found", async (t) => {
  const { service, team, cli } = await start(t)
  const other = await makeTeam(service, { domain: 'other.test' })
  for (const [id, email] of [
    [team.id, 'diaz@example.com'],
    [other.id, ANA],
  ] as const)
    t.match(await cli.fault(['contact', 'export', id, email]), /^Nothing is stored about .+@example\.com\.$/)
  t.match(await cli.fault(['contact', 'export', crypto.randomUUID(), ANA]), /team/)
  t.match(await cli.json(['contact', 'export', team.id, 'anna.diaz@example.com']), {
    contact: null,
    emails: [{ id: String }],
  })
})

t.test("an owner's export on the contact's page is audited", async (t) => {
  const { service, team, cli, database } = await start(t)
  const printed = await cli.json(['contact', 'export', team.id, ANA])
  const owner = await signedIn(service, { team: team.id, role: 'owner' })
  const page = `/teams/${team.id}/contacts/${IDENTITY}`
  t.match((await owner.get(page)).html, 'Export personal data')
  const file = await owner.post(`${page}/export`)
  t.equal(file.status, 200)
  t.match(file.headers.get('content-disposition'), /^attachment; filename="contact-[^"]+@[^"]+\.json"/)
  t.strictSame({ ...JSON.parse(file.html), exported_at: '' }, { ...printed, exported_at: '' })
  const viewer = await signedIn(service, { team: team.id, role: 'editor' })
  t.notMatch((await viewer.get(page)).html, 'Export personal data')
  t.equal((await owner.post(`/teams/${team.id}/contacts/nobody@example.com/export`)).status, 404)
  const lines = (await auditEntries(database, { team: team.id, limit: 50 })).filter(
    ({ action }) => action === 'contact.export',
  )
  t.strictSame(lines.map(({ actor }) => actor).sort(), ['cli', owner.email].sort())
  for (const { subject } of lines) t.match(subject, /^[0-9a-f]{64}$/)
})

t.test('lists internal email without its links', async (t) => {
  const { team, database, by, sole } = await start(t)
  await database.query(sql.unsafe`update accepted_emails set internal = true where id = ${sole}`)
  t.notMatch(JSON.stringify(await exportPerson(by, team.id, IDENTITY)), /Secret of Ana/)
})

t.test('exports more emails than one batch, each once', async (t) => {
  const { service, team, by } = await start(t)
  await sendEmails(service, team, Array(300).fill({ to: [ANA] }))
  const { emails } = (await exportPerson(by, team.id, IDENTITY)) as unknown as { emails: { id: string }[] }
  t.equal(new Set(emails.map(({ id }) => id)).size, 306)
  t.equal(emails.length, 306)
})
