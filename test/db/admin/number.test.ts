/** The verbs of WhatsApp numbers: the checks with Meta, the output, and a change of a team's number. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { sql } from 'slonik'
import { lockAccount } from '../../../db/accounts/teams/limits.ts'
import type { Tx } from '../../../db/postgres/pool.ts'
import { countRow } from '../../../db/postgres/rows.ts'
import { refreshWhatsappTemplates } from '../../../workers/jobs/refresh-whatsapp-templates.ts'
import { createWhatsappProvider } from '../../../workers/providers/whatsapp/cloud.ts'
import { type CloudAccount, startWhatsappSandbox } from '../../sandbox/whatsapp.ts'
import { adminCli } from '../../support/admin.ts'
import { signedIn, textOf } from '../../support/dashboard.ts'
import { EMPTY } from '../../support/empty.ts'
import { makeTeam, startService } from '../../support/service.ts'
import t, { type Test } from '../../support/tap.ts'
import { aMessage, aTemplate, makeTemplate, numbers, templateOf } from '../../support/whatsapp.ts'
import { makeDefaultNumber } from '../../support/whatsapp-numbers.ts'
import { startWorker, until } from '../../support/worker.ts'

const service = await startService(t)
const lockWaits = (tx: Tx) =>
  tx.oneFirst(sql.type(countRow)`
    select count(*)::int as count from pg_locks where not granted`)
const TOKEN = 'EAA-token-of-acme'

const account = (changes: Partial<CloudAccount> = {}): CloudAccount => ({
  ...{ id: '900', token: TOKEN, app_id: '77', subscribed: false, templates: [] },
  numbers: [
    {
      ...{ id: '901', display_phone_number: '+1 555-555-0901', verified_name: 'Acme' },
      ...{ quality_rating: 'GREEN', whatsapp_business_manager_messaging_limit: 'TIER_1K' },
    },
  ],
  ...changes,
})

/** A worker's provider and default number, which belongs to another account. */
const deliveryBy = (url: string) => ({
  provider: createWhatsappProvider({ url }),
  number: { phone_number_id: '1', account_id: '100', access_token: 'another', messages_per_second: 80 },
  unknown_wait: 1,
  begin: async () => {},
})

async function begin(t: Test, given: CloudAccount = account()) {
  await service.database.query(sql.unsafe`update teams set whatsapp_number = null`)
  await service.database.query(sql.unsafe`delete from whatsapp_messages`)
  await service.database.query(sql.unsafe`delete from whatsapp_numbers`)
  const other = { ...account({ id: '800', numbers: [] }) }
  const sandbox = await startWhatsappSandbox({ port: 0, accounts: [given, other] })
  t.teardown(() => sandbox.close())
  const cli = adminCli({ DATABASE_URL: service.url, WHATSAPP_API_URL: sandbox.url })
  const adding = ['number', 'add', 'acme', '--phone-number-id', '901', '--account-id', '900']
  const add = (...more: string[]) => cli.json([...adding, ...more], { input: `${TOKEN}\n` })
  const refused = (args: string[], input = TOKEN) => cli.fault(args, { input })
  return { cli, add, adding, refused, given, sandbox }
}

const SHOWN = {
  ...{ name: 'acme', phone_number_id: '901', account_id: '900', display_phone_number: '+1 555-555-0901' },
  ...{ verified_name: 'Acme', quality: 'GREEN', messaging_limit: 'TIER_1K', messages_per_second: 80 },
  ...{ paused: false, subscribed: false },
}

t.test("number add stores Meta's data about the number", async (t) => {
  const { cli, add } = await begin(t)
  const { missing, checked_at, ...shown } = await add()
  t.strictSame(shown, SHOWN)
  t.match(missing, [/900/])
  t.match(checked_at, /Z$/)
  t.match(await cli.json(['number', 'list']), [SHOWN])
  t.match(await cli.json(['number', 'show', 'acme']), { ...SHOWN, hook: null, verify_token: null })
})

t.test('stores nothing unless the token can access the number', async (t) => {
  const { cli, adding, refused } = await begin(t)
  await refused(adding, 'another-token')
  await refused(adding, 'a token')
  await refused(adding.map((word) => (word === '900' ? '902' : word)))
  await refused(adding.map((word) => (word === '900' ? '800' : word)))
  await refused(adding.map((word) => (word === '901' ? '902' : word)))
  await refused(adding.map((word) => (word === 'acme' ? 'default' : word)))
  await refused(adding.map((word) => (word === 'acme' ? 'Acme' : word)))
  t.strictSame(await cli.json(['number', 'list']), [])
})

t.test('names and phone number IDs are unique', async (t) => {
  const { cli, add, adding, refused } = await begin(t)
  await makeDefaultNumber(service, { phone_number_id: '901', account_id: null })
  await refused(adding)
  await makeDefaultNumber(service, { phone_number_id: '1', account_id: null })
  await add()
  await refused(adding)
  await refused(adding.map((word) => (word === 'acme' ? 'other' : word)))
  t.equal((await cli.json(['number', 'list'])).length, 1, 'without the default number')
})

t.test('number check prints missing settings, and subscribes on request', async (t) => {
  const { cli, add, given } = await begin(t)
  await add()
  t.match(await cli.json(['number', 'check', 'acme']), { subscribed: false, missing: [/subscribe/] })
  t.match(await cli.json(['number', 'check', 'acme', '--subscribe']), { subscribed: true, missing: EMPTY })
  await cli.json(['number', 'check', 'acme', '--subscribe'])
  t.equal(given.subscriptions, 1)
  given.token = 'replaced'
  const { code, stdout } = await cli.run(['number', 'check', 'acme'])
  t.equal(code, 1)
  t.match(JSON.parse(stdout), { ...SHOWN, subscribed: true, missing: [/token/] })
  await cli.fault(['number', 'set', 'acme', '--token'], { input: TOKEN })
  await cli.json(['number', 'set', 'acme', '--token'], { input: 'replaced' })
  t.match(await cli.json(['number', 'check', 'acme']), { missing: EMPTY })
})

t.test('a number with an app secret has a hook', async (t) => {
  const { cli, add } = await begin(t)
  const file = join(t.testdir(), 'secret')
  await writeFile(file, 'app secret\n')
  await add('--app-secret-file', file, '--messages-per-second', '20')
  t.match(await cli.json(['number', 'show', 'acme']), {
    ...{ messages_per_second: 20, hook: '/hooks/whatsapp/acme', verify_token: /^[0-9a-f]{32}$/ },
  })
  t.match(await cli.json(['number', 'set', 'acme', '--messages-per-second', '40']), {
    messages_per_second: 40,
  })
})

t.test('team number keeps the number of waiting messages', async (t) => {
  const { cli, add } = await begin(t)
  await makeDefaultNumber(service, { phone_number_id: '1', account_id: '100' })
  await add()
  const team = await makeTeam(service)
  const template = await makeTemplate(service, team.id)
  const send = () =>
    service.call('POST', '/v1/whatsapp/messages', {
      key: team.key,
      body: aMessage(template.id, { to: numbers(2) }),
    })
  await send()
  const moved = { team_id: team.id, number: 'acme', waiting: 2 }
  t.strictSame(await cli.json(['team', 'number', team.id, 'acme']), moved)
  t.match(await send(), { body: { error: { code: 'template_disabled', message: /900/ } } })
  t.match(await cli.json(['whatsapp-template', 'list', team.id]), [{ id: template.id, status: 'pending' }])
  await cli.fault(['number', 'remove', 'acme'])
  t.strictSame(await cli.json(['team', 'number', team.id, 'default']), {
    ...{ team_id: team.id, number: 'default', waiting: 0 },
  })
  await cli.fault(['team', 'number', team.id, 'other'])
  const sendFrom = (id: string | null) =>
    service.database.query(sql.unsafe`
      update whatsapp_messages set phone_number_id = ${id} where team_id = ${team.id}`)
  await sendFrom('901')
  t.match(await cli.json(['team', 'number', team.id, 'default']), { waiting: 2 })
  await cli.fault(['number', 'remove', 'acme'])
  await sendFrom(null)
  t.strictSame(await cli.json(['number', 'remove', 'acme']), { name: 'acme', removed: true })
})

t.test('rejects changing a number while old web processes run', async (t) => {
  const { cli, add } = await begin(t)
  await add()
  const team = await makeTeam(service)
  await service.database.query(sql.unsafe`
    insert into processes (id, kind, host, pid, queues, senders, completed, gauges, started_at, seen_at)
    values (gen_random_uuid(), 'web', 'h', 1, '{}', '{}', '{}', '{}', now(), now())`)
  await cli.fault(['team', 'number', team.id, 'acme'])
  await service.database.query(sql.unsafe`delete from processes where version is null`)
  t.match(await cli.json(['team', 'number', team.id, 'acme']), { number: 'acme' })
})

t.test('pausing is manual, and resuming ends every pause', async (t) => {
  const { cli, add } = await begin(t)
  await add()
  t.match(await cli.json(['number', 'pause', 'acme']), { paused: true })
  await service.database.query(sql.unsafe`
    insert into senders (key, rate, tokens, refilled_at, paused_until)
    values ('whatsapp:901', 1, 1, now(), now() + interval '1 hour')
    on conflict (key) do update set paused_until = excluded.paused_until`)
  t.match(await cli.json(['number', 'resume', 'acme']), { paused: false })
})

t.test("syncs a team's templates with its own account", async (t) => {
  const listed = (name: string, status = 'APPROVED') => aTemplate({}, { name, language: 'en_US', status })
  const fillers = Array.from({ length: 30 }, (_, at) =>
    listed(`filler_${at}`, at === 0 ? 'PAUSED' : 'APPROVED'),
  )
  const given = account({ templates: [...fillers, listed('shared')] })
  const { cli, add, sandbox } = await begin(t, given)
  await makeDefaultNumber(service, { phone_number_id: '1', account_id: '100' })
  await add()
  const team = await makeTeam(service)
  const template = await makeTemplate(service, team.id, listed('shared'))
  await cli.json(['team', 'number', team.id, 'acme'])
  const send = async () =>
    (
      await service.call('POST', '/v1/whatsapp/messages', {
        key: team.key,
        body: aMessage(template.id, { to: numbers(1) }),
      })
    ).status
  t.equal(await send(), 400)
  await startWorker(t, service, { whatsapp: deliveryBy(sandbox.url) })
  await until('it is found in the new account', async () => (await send()) === 201)
  const verb = (name: string, ...args: string[]) => ['whatsapp-template', name, team.id, ...args]
  const available = await cli.json(verb('available'))
  t.equal(available.length, 31)
  t.strictSame(available[0], {
    ...{ name: 'filler_0', language: 'en_US', category: 'UTILITY', status: 'paused' },
  })
  const adding = verb('add', 'filler_1', '--language', 'en_US')
  t.match(await cli.json(adding), { name: 'filler_1', status: 'approved', synced_at: /Z$/ })
  await cli.fault(adding)
  await cli.fault(verb('add', 'filler_1', '--language', 'de'))
  t.equal((await cli.json(verb('available'))).length, 31, 'all pages, whatever the team has')
  const owner = await signedIn(service, { team: team.id, role: 'owner' })
  const { location } = await owner.post(`/teams/${team.id}/whatsapp-templates/sync`)
  const page = async () => textOf((await owner.get(String(location).replace('/dashboard', ''))).html)
  await until('a worker has listed them', async () => /filler_2 /.test(await page()))
  t.notMatch(await page(), /Available.* (filler_1|shared) /, 'what the team doesn’t have')
  const query = new URLSearchParams({ name: 'filler_2', language: 'en_US' })
  t.equal((await owner.post(`/teams/${team.id}/whatsapp-templates/available?${query}`)).status, 303)
  await until('it is added', async () =>
    (await cli.json(verb('list'))).some(({ name }: { name: string }) => name === 'filler_2'),
  )
  given.templates = [listed('shared', 'DISABLED')]
  await refreshWhatsappTemplates(service.deps)
  await until(
    'the night’s refresh is done',
    async () => (await templateOf(service, template.id)).status === 'disabled',
  )
})

t.test('a send waiting for a change uses the new number', async (t) => {
  const { cli, add } = await begin(t)
  await makeDefaultNumber(service, { phone_number_id: '1', account_id: '100' })
  await add()
  const team = await makeTeam(service)
  const template = await makeTemplate(service, team.id)
  const body = aMessage(template.id, { to: numbers(1) })
  const sends: Promise<{ status: number }>[] = []
  await service.database.transaction(async (tx) => {
    await lockAccount(tx, team.id)
    sends.push(service.call('POST', '/v1/whatsapp/messages', { key: team.key, body }))
    await until('it waits', async () => (await lockWaits(tx)) > 0)
    await tx.query(sql.unsafe`update teams set whatsapp_number = 'acme' where id = ${team.id}`)
  })
  t.match(await sends[0], { status: 400, body: { error: { code: 'template_disabled' } } })
  await cli.json(['team', 'number', team.id, 'default'])
})
