/** Tests the callback, app secret, subscription, teams and removal of WhatsApp numbers. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { sql } from 'slonik'
import { WEBHOOK_FIELDS } from '../../../db/messages/whatsapp/number-hook.ts'
import { countRow } from '../../../db/postgres/rows.ts'
import { checkWhatsappNumbers } from '../../../workers/jobs/check-whatsapp-numbers.ts'
import { type CloudAccount, type Json, startWhatsappSandbox } from '../../sandbox/whatsapp.ts'
import { adminCli } from '../../support/admin.ts'
import { EMPTY } from '../../support/empty.ts'
import { makeTeam, startService } from '../../support/service.ts'
import { ROOT } from '../../support/sources.ts'
import t, { type Test } from '../../support/tap.ts'
import { aMessage, makeTemplate, postUpdates, sendWhatsapp, templateOf } from '../../support/whatsapp.ts'
import { giveNumber, makeDefaultNumber, makeNumber } from '../../support/whatsapp-numbers.ts'

const service = await startService(t)
const { database } = service
const TOKEN = 'EAA-token-of-acme'
const SITE = 'https://mail.example.com'

async function begin(t: Test, changes: Partial<CloudAccount> = {}, callback: Json = {}) {
  for (const table of ['whatsapp_messages', 'pause_history'])
    await database.query(sql.unsafe`delete from ${sql.identifier([table])}`)
  await database.query(sql.unsafe`update teams set whatsapp_number = null`)
  await database.query(sql.unsafe`delete from whatsapp_numbers`)
  await makeDefaultNumber(service, { phone_number_id: '1', account_id: '100' })
  const acme: Json & { id: string } = { id: '901', display_phone_number: '+1 555-555-0901' }
  const given: CloudAccount = {
    ...{ id: '900', token: TOKEN, app_id: '77', subscribed: false, templates: [] },
    ...{ numbers: [{ ...acme, webhook_configuration: callback }, { id: '902' }], ...changes },
  }
  const sandbox = await startWhatsappSandbox({ port: 0, accounts: [given] })
  t.teardown(() => sandbox.close())
  const cli = adminCli({ DATABASE_URL: service.url, WHATSAPP_API_URL: sandbox.url, PUBLIC_URL: SITE })
  const add = (name: string, id: string, ...more: string[]) =>
    cli.json(['number', 'add', name, '--phone-number-id', id, '--account-id', '900', ...more], {
      input: TOKEN,
    })
  return { cli, add, given, sandbox }
}

const jobs = (name: string, team: string) =>
  database.oneFirst(sql.type(countRow)`
    select count(*) from pgboss.job where name = ${name} and data ->> 'team_id' = ${team}`)

t.test('number check compares the callback with our hook', async (t) => {
  const callbacks: [callback: Json, is_our_hook: boolean | null][] = [
    [{ application: `${SITE}/hooks/whatsapp` }, true],
    [
      { application: 'https://other.example.com', whatsapp_business_account: `${SITE}/hooks/whatsapp/acme` },
      true,
    ],
    [{ application: `${SITE}/hooks/whatsapp`, phone_number: 'https://inbox.example.com/whatsapp' }, false],
    [{ application: 'https://inbox.example.com/hooks/whatsapp' }, false],
    [{ application: `${SITE}/hooks/whatsapp/other` }, false],
    [{}, null],
  ]
  for (const [callback, is_our_hook] of callbacks) {
    const { cli, add } = await begin(t, { subscribed: true }, callback)
    const { missing } = await add('acme', '901')
    const checked = await cli.json(['number', 'check', 'acme'])
    t.strictSame(checked.webhook_configuration, callback)
    t.match(checked, { is_our_hook, fields: [...WEBHOOK_FIELDS], missing })
    t.equal(missing.length, is_our_hook === false ? 1 : 0, JSON.stringify(callback))
  }
})

t.test('workers/README.md lists each field to subscribe', async (t) => {
  const page = await readFile(join(ROOT, 'workers/README.md'), 'utf8')
  const [, fields = ''] = /\n\| field \| effect \|\n((?:.+\n)+)/.exec(page) ?? []
  const named = fields.split('\n').flatMap((line) => (line.split('|')[1] ?? '').match(/[a-z_]{5,}/g) ?? [])
  t.same(named.sort(), [...WEBHOOK_FIELDS].sort())
})

t.test('number add --subscribe subscribes our app, whichever others are subscribed', async (t) => {
  const { cli, add, given } = await begin(t, { other_apps: ['78'] })
  t.match(await add('acme', '901'), { subscribed: false, missing: [/subscribe/] })
  await t.rejects(add('acme', '902'), /already exists/)
  await cli.json(['number', 'remove', 'acme'])
  t.match(await add('acme', '901', '--subscribe'), { subscribed: true, missing: EMPTY })
  t.equal(given.subscriptions, 1)
  const unknown = await begin(t, { subscribed: true, app_id: undefined as never })
  t.match(await unknown.add('acme', '901'), { subscribed: false }, 'Meta doesn’t name our app')
})

t.test("a number's hook verifies posts with the app secret of its file", async (t) => {
  const { cli, add } = await begin(t)
  const updates = { object: 'whatsapp_business_account', entry: [] }
  const post = async (secret: string) =>
    (await postUpdates(service, updates, { path: '/hooks/whatsapp/acme', secret })).status
  const file = join(t.testdir(), 'secret')
  await writeFile(file, 'first secret\n')
  await add('acme', '901', '--app-secret-file', file)
  t.strictSame([await post('first secret'), await post('second secret')], [200, 401])
  await writeFile(file, ' second secret\n')
  await cli.json(['number', 'set', 'acme', '--app-secret-file', file])
  t.strictSame([await post('first secret'), await post('second secret')], [401, 200])
  await cli.fault(['number', 'set', 'acme'])
})

t.test("can't remove a number with scheduled messages", async (t) => {
  const { cli, add } = await begin(t)
  await add('acme', '901')
  const team = await makeTeam(service)
  const template = await makeTemplate(service, team.id)
  await giveNumber(service, team.id, 'acme')
  const scheduled_at = new Date(Date.now() + 3_600_000).toISOString()
  const [id = ''] = await sendWhatsapp(service, team, template.id, { scheduled_at })
  t.match(await cli.json(['team', 'number', team.id, 'default']), { waiting: 1 })
  t.match(await cli.fault(['number', 'remove', 'acme']), /Teams: 0, waiting messages: 1\./)
  await cli.json(['whatsapp', 'cancel', team.id, id])
  t.match(await cli.json(['number', 'remove', 'acme']), { removed: true })
})

t.test('removing a paused number ends its pause', async (t) => {
  const { cli, add } = await begin(t)
  await add('acme', '901')
  await cli.json(['number', 'pause', 'acme'])
  const open = () =>
    database.oneFirst(sql.type(countRow)`
      select count(*) from pause_history where subject = 'number:whatsapp:901' and ended_at > service_time()`)
  t.equal(await open(), 1)
  await cli.json(['number', 'remove', 'acme'])
  t.match(await add('acme', '901'), { paused: false })
  t.equal(await open(), 0)
})

t.test('templates stay when a team changes numbers within an account', async (t) => {
  const { cli, add } = await begin(t)
  await add('acme', '901')
  await add('acme-2', '902')
  const team = await makeTeam(service)
  await cli.json(['team', 'number', team.id, 'acme'])
  const template = await makeTemplate(service, team.id)
  const send = () =>
    service.call('POST', '/v1/whatsapp/messages', { key: team.key, body: aMessage(template.id) })
  t.equal((await send()).status, 201, 'a new template belongs to the account of its team’s number')
  const before = await jobs('sync-whatsapp-number-templates', team.id)
  t.match(await cli.json(['team', 'number', team.id, 'acme-2']), { waiting: 1 })
  t.match(await templateOf(service, template.id), { status: 'approved' })
  t.equal((await send()).status, 201)
  t.equal(await jobs('sync-whatsapp-number-templates', team.id), before)
})

t.test("a number that can't be checked delays no other", async (t) => {
  const { cli, add, sandbox } = await begin(t)
  const broken = { name: 'a-broken-one', phone_number_id: '800', account_id: '800', token: 'a-token' }
  await makeNumber(service, broken)
  await database.query(sql.unsafe`update whatsapp_numbers set access_token = '' where name = ${broken.name}`)
  const { checked_at } = await add('acme', '901')
  const notices = { from: null, operator: null, site: null }
  await checkWhatsappNumbers({ ...service.deps, graphApi: sandbox.url, notices })
  const [first, second, ...others] = await cli.json(['number', 'list'])
  t.same(others, [], 'without the default number')
  t.equal(first.checked_at, null)
  t.ok(second.checked_at > checked_at)
})
