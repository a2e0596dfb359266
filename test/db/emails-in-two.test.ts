/**
 * The way from one table of emails to two: what an installation has is kept while it goes on sending, and the version
 * before works on the view that has the old table's name.
 */
import { cp, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Client } from 'pg'
import { migrate } from '../../db/migrate.ts'
import { migrationFiles } from '../../db/schema.sql.ts'
import { emptyDatabase, testDatabase } from '../support/database.ts'
import t, { type Test } from '../support/tap.ts'

const MIGRATIONS = join(import.meta.dirname, '../../db/migrations')
const TEAM = '0190a1b2-0000-7000-8000-000000000001'
const COLUMNS = `team_id, id, domain_id, template_id, template_version_id, variables, from_address, to_emails, subject,
  html, size_kb, tags, status, idempotency_key, created_at, requeued_at, provider_message_id, broadcast_id, contact_id,
  body_text, headers, reply_to, http_request_id, pending_recipients, unfinished, tries_from, attachments`

async function connected(t: Test, url: string): Promise<Client> {
  const client = new Client({ connectionString: url })
  await client.connect()
  t.teardown(() => client.end())
  return client
}

/** The migrations up to the one whose name ends so. */
async function until(t: Test, name: string): Promise<URL> {
  const folder = join(t.testdir(), name)
  await mkdir(folder)
  const files = (await migrationFiles()).map(({ file }) => file)
  const last = files.findIndex((file) => file.endsWith(`-${name}.sql`))
  for (const file of files.slice(0, last + 1)) await cp(join(MIGRATIONS, file), join(folder, file))
  return pathToFileURL(`${folder}/`)
}

const id = (n: number): string => `0190a1b2-0001-7000-8000-${String(n).padStart(12, '0')}`

/** As the version before stores an email. */
const insert = (client: Client, n: number, more: Record<string, unknown> = {}) => {
  const email = {
    ...{
      team_id: TEAM,
      id: id(n),
      domain_id: TEAM,
      from_address: 'a@demo.test',
      to_emails: ['b@example.com', 'c@example.com'],
    },
    ...{ subject: `Number ${n}`, html: '<p>Hello</p>', tags: '["a"]', status: 'queued', reply_to: '' },
    ...{ created_at: '2026-01-01T00:00:00Z', http_request_id: `call-${n}`, ...more },
  }
  const names = Object.keys(email)
  return client.query(
    `insert into emails (${names}) values (${names.map((_, at) => `$${at + 1}`)}) returning id, status, created_at`,
    Object.values(email),
  )
}

/** As the version before settles a try: it locks rows, then writes them. */
async function settle(client: Client, n: number, status: string, providerId: string | null): Promise<void> {
  await client.query('begin')
  await client.query(
    'select to_emails from emails where (team_id, id) in (select $1::uuid, $2::uuid) order by team_id, id for no key update',
    [TEAM, id(n)],
  )
  const { rowCount } = await client.query(
    `update emails e set status = c.status, provider_message_id = c.provider_id from (
       select team_id, id, $3::text as status, $4::text as provider_id from emails where team_id = $1 and id = $2) c
     where e.team_id = c.team_id and e.id = c.id returning e.created_at, e.broadcast_id`,
    [TEAM, id(n), status, providerId],
  )
  t.equal(rowCount, 1)
  await client.query('commit')
}

const all = async (client: Client) =>
  (await client.query(`select ${COLUMNS} from emails order by team_id, id`)).rows

t.test('emails and their states are kept, and what is sent while they are copied', async (t) => {
  const { url } = await emptyDatabase(t)
  await migrate(url, () => {}, { directory: await until(t, 'figures-of-broadcasts') })
  const client = await connected(t, url)
  for (let n = 0; n < 20; n++) await insert(client, n)
  await insert(client, 20, { http_request_id: null, tags: '["heliograph:sign-in-link"]' })
  await insert(client, 21, { broadcast_id: id(1), contact_id: id(2), http_request_id: null })
  await insert(client, 22, {
    pending_recipients: ['c@example.com'],
    provider_message_id: 'p',
    status: 'sent',
  })
  await insert(client, 23, {
    requeued_at: new Date(),
    tries_from: new Date(),
    size_kb: 1.5,
    idempotency_key: 'k',
  })
  await settle(client, 3, 'sent', 'p-3')
  await migrate(url, () => {}, { directory: await until(t, 'email-states') })
  await insert(client, 24, { size_kb: 2 })
  await settle(client, 3, 'delivered', 'p-3')
  await settle(client, 4, 'bounced', null)
  await settle(client, 24, 'sent', 'p-24')
  await client.query('delete from emails where team_id = $1 and id = any($2)', [TEAM, [id(5), id(24)]])
  await insert(client, 25)
  const before = await all(client)
  t.equal(before.length, 24)
  await migrate(url)
  t.strictSame(await all(client), before)
  const { rows } = await client.query(
    `select count(*)::integer as states, count(reached_id)::integer as reached,
       array_agg(id) filter (where not in_figures) as sign_in from email_states`,
  )
  t.strictSame(rows, [{ states: 24, reached: 1, sign_in: [id(20)] }])
  t.test('the copies begin again where they were broken off', async (t) => {
    const again = await emptyDatabase(t)
    await migrate(again.url, () => {}, { directory: await until(t, 'figures-of-broadcasts') })
    const other = await connected(t, again.url)
    for (let n = 0; n < 5; n++) await insert(other, n)
    await migrate(again.url, () => {}, { directory: await until(t, 'email-states') })
    for (const _ of [1, 2]) await other.query('call copy_email_states()')
    await migrate(again.url)
    t.equal((await all(other)).length, 5)
  })
})

t.test('the version before stores, settles, empties and deletes by the view', async (t) => {
  const { url } = await testDatabase(t)
  const client = await connected(t, url)
  const { rows } = await insert(client, 1)
  t.match(rows, [{ id: id(1), status: 'queued' }])
  await t.rejects(insert(client, 1), { code: '23505' })
  await insert(client, 2, { http_request_id: null, tags: '["heliograph:sign-in-link"]' })
  await settle(client, 1, 'sent', 'p-1')
  t.match(await all(client), [
    { status: 'sent', provider_message_id: 'p-1', unfinished: false, html: '<p>Hello</p>' },
    { status: 'queued', provider_message_id: null, unfinished: true },
  ])
  await client.query(`update emails set html = '', to_emails = '{c@example.com}' where id = $1`, [id(1)])
  t.match(await all(client), [
    { html: '', to_emails: ['c@example.com'], status: 'sent' },
    { html: '<p>Hello</p>' },
  ])
  const counts = await client.query('select in_figures, rewrites from email_states order by id')
  t.strictSame(counts.rows, [
    { in_figures: true, rewrites: 1 },
    { in_figures: false, rewrites: 0 },
  ])
  const skipped = await client.query(
    'select id from emails where not unfinished order by id for update skip locked',
  )
  t.equal(skipped.rowCount, 1)
  const gone = await client.query('delete from emails e where e.id = $1 returning e.status, e.created_at', [
    id(1),
  ])
  t.match(gone.rows, [{ status: 'sent' }])
  t.equal((await client.query('select from accepted_emails')).rowCount, 1)
  t.equal((await client.query('select from email_states')).rowCount, 1)
})
