/**
 * The verbs of teams. The effect of a plan change on the account is in
 * test/db/accounts/teams/subscribe.test.ts.
 */
import { adminCli } from '../../support/admin.ts'
import { testDatabase } from '../../support/database.ts'
import t from '../../support/tap.ts'

const { url } = await testDatabase(t)
const cli = adminCli({ DATABASE_URL: url })

t.test('team create uses the free plan or the given one', async (t) => {
  const free = await cli.json(['team', 'create', '--name', 'Acme & Söhne'])
  t.match(free, { id: /^[\da-f-]{36}$/, name: 'Acme & Söhne', plan: 'free' })
  t.same(Object.keys(free), ['id', 'name', 'plan'])
  t.match(await cli.json(['team', 'create', '--name', 'Big', '--plan', 'pro']), { plan: 'pro' })
  t.match(await cli.json(['team', 'list']), [
    { id: free.id, plan: 'free' },
    { name: 'Big', plan: 'pro' },
  ])
})

t.test('team create rejects an invalid name and an unavailable plan', async (t) => {
  t.match(await cli.fault(['team', 'create', '--name', ' ']), /name must not be empty/)
  t.match(await cli.fault(['team', 'create', '--name', 'a\nb']), /name must not contain control characters/)
  t.match(await cli.fault(['team', 'create', '--name', 'x'.repeat(201)]), /at most 200 characters/)
  const unknown = await cli.fault(['team', 'create', '--name', 'x', '--plan', 'gold'])
  t.match(unknown, /^plan .*free, pro, enterprise.* gold\.$/)
  t.match(await cli.fault(['team', 'create', '--name', 'x', '--plan', 'marketing']), /^plan .* marketing\.$/)
})

t.test('team show prints limits, used, left, bucket and period', async (t) => {
  const { id } = await cli.json(['team', 'create', '--name', 'Acme'])
  const now = new Date()
  const start = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1)).toISOString()
  const end = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1)).toISOString()
  t.strictSame(await cli.json(['team', 'show', id.toUpperCase()]), {
    id,
    name: 'Acme',
    plan: 'free',
    suspended_at: null,
    bulk_paused: null,
    suppress_transactional: 'bounces',
    limits: { emails: 5000, contacts: 1000, whatsapp: 250, rate: 1, storage: 1_000_000_000 },
    overrides: { emails: null, contacts: null, whatsapp: null, rate: null, storage: null },
    used: { emails: 0, contacts: 0, whatsapp: 0, storage: 0 },
    left: { emails: 5000, contacts: 1000, whatsapp: 250, storage: 1_000_000_000 },
    bucket: { tokens: 5, capacity: 5 },
    period: { start, end },
  })
  const custom = await cli.json(['team', 'plan', id, '--plan', 'enterprise'])
  t.match(custom, { limits: { emails: null, contacts: null }, left: { emails: null, contacts: null } })
})

t.test('team plan only changes the given limits', async (t) => {
  const { id } = await cli.json(['team', 'create', '--name', 'Acme'])
  const limits = ['--emails', '10', '--contacts', '0', '--whatsapp', '3', '--rate', '2.5', '--storage', '0.5']
  const changed = await cli.json(['team', 'plan', id, '--plan', 'free', ...limits])
  t.strictSame(changed.limits, { emails: 10, contacts: 0, whatsapp: 3, rate: 2.5, storage: 500_000_000 })
  t.match(await cli.json(['team', 'plan', id, '--contacts', '4']), {
    plan: 'free',
    limits: { contacts: 4, rate: 2.5 },
  })
  t.match(await cli.json(['team', 'plan', id, '--contacts', '0']), { limits: { contacts: 0 } })
  t.match(await cli.fault(['team', 'plan', id]), /^Specify what to change/)
  const period = ['--period-start', '2026-01-31T00:00:00Z', '--period-end', '2026-02-28']
  const paid = await cli.json(['team', 'plan', id, '--plan', 'pro', '--emails', '11', ...period])
  t.match(paid, { plan: 'pro', limits: { emails: 11, whatsapp: 10_000, rate: 10 } })
  t.strictSame(paid.overrides, { emails: 11, contacts: null, whatsapp: null, rate: null, storage: null })
  t.ok(new Date(paid.period.end) > new Date(), 'a period that has passed rolls on')
  t.strictSame((await cli.json(['team', 'show', id])).limits, paid.limits)
  const back = ['--emails', 'plan', '--contacts', 'plan', '--whatsapp', 'plan', '--rate', 'plan']
  const bare = await cli.json(['team', 'plan', id, '--plan', 'pro', ...back])
  t.match(bare, { limits: { emails: 50_000 }, overrides: { emails: null } })
})

t.test('team plan rejects invalid limits and periods', async (t) => {
  const { id } = await cli.json(['team', 'create', '--name', 'Acme'])
  const refuse = async (flags: string[], reason: RegExp) =>
    t.match(await cli.fault(['team', 'plan', id, '--plan', 'pro', ...flags]), reason, flags.join(' '))
  await refuse(['--emails', '-1'], /an integer from 0/)
  await refuse(['--emails', '1.5'], /an integer from 0/)
  for (const flag of ['--emails', '--contacts', '--whatsapp'])
    await refuse([flag, '2147483648'], new RegExp(`'${flag} <n>'.* must be an integer from 0 to 2147483647`))
  await refuse(['--rate', '0'], /a number above 0/)
  await refuse(['--rate', 'fast'], /a number above 0/)
  await refuse(['--rate', '0.1'], /The rate must be from 0.2/)
  await refuse(['--period-start', '2026-01-01'], /Specify both --period-start and --period-end/)
  await refuse(['--period-end', '2026-01-01'], /Specify both --period-start and --period-end/)
  await refuse(['--period-start', '2026-02-30', '--period-end', '2026-04-01'], /must be a time such as/)
  await refuse(['--period-start', '2026-01-01T00:00', '--period-end', '2026-02-01'], /must be a time such as/)
  await refuse(['--period-start', '2026-02-01', '--period-end', '2026-02-01'], /must end after its start/)
  await refuse(['--period-start', '2999-01-01', '--period-end', '2999-02-01'], /must not start in the future/)
  t.match(await cli.fault(['team', 'plan', id, '--plan', 'gold']), /There is no plan gold/)
  t.match(await cli.json(['team', 'show', id]), { plan: 'free', limits: { emails: 5000 } }, 'as it was')
})

t.test('team rename changes the name, and rejects an invalid one', async (t) => {
  const { json, fault } = cli
  const made = await json(['team', 'create', '--name', 'Before'])
  t.match(await json(['team', 'rename', made.id, '--name', 'After']), { id: made.id, name: 'After' })
  t.match(await json(['team', 'show', made.id]), { id: made.id, name: 'After' })
  t.match(await fault(['team', 'rename', made.id, '--name', ' ']), /name must not be empty/)
})

t.test('team suspend prints the time, and team resume ends it', async (t) => {
  const { id } = await cli.json(['team', 'create', '--name', 'Acme'])
  const suspended = await cli.json(['team', 'suspend', id])
  t.match(suspended, { id, name: 'Acme', suspended_at: /Z$/ })
  t.match(await cli.json(['team', 'suspend', id]), { suspended_at: suspended.suspended_at })
  t.match(await cli.json(['team', 'show', id]), { suspended_at: suspended.suspended_at })
  const listed = await cli.json(['team', 'list'])
  const row = listed.find((team: { id: string }) => team.id === id)
  t.match(row, { suspended_at: suspended.suspended_at })
  t.match(await cli.json(['team', 'resume', id]), { id, suspended_at: null })
  const entries = await cli.json(['audit', 'list', '--team', id])
  t.match(entries, [
    { action: 'team.resume', actor: 'cli', subject: 'Acme' },
    { action: 'team.suspend', actor: 'cli' },
    { action: 'team.suspend' },
  ])
})
