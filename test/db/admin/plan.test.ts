/** The verbs of the plan catalog. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import defaultCatalog from '../../../db/accounts/plans/default-catalog.json' with { type: 'json' }
import { adminCli } from '../../support/admin.ts'
import { testDatabase } from '../../support/database.ts'
import t from '../../support/tap.ts'

const { url } = await testDatabase(t)
const cli = adminCli({ DATABASE_URL: url })

t.test('plan load reads the output of plan list', async (t) => {
  const { stdout } = await cli.run(['plan', 'list'])
  const listed = JSON.parse(stdout)
  const keys = listed.plans.map((plan: { key: string }) => plan.key)
  const defaults = defaultCatalog.plans.map((plan) => plan.key)
  t.same(keys, defaults)
  t.match(listed, defaultCatalog)
  t.same(await cli.json(['plan', 'load', '-'], { input: stdout }), listed)
  t.equal((await cli.run(['plan', 'list'])).stdout, stdout)
})

t.test('plan load replaces the catalog', async (t) => {
  const { url } = await testDatabase(t)
  const cli = adminCli({ DATABASE_URL: url })
  const [free, pro] = defaultCatalog.plans
  const tiny = { ...free, key: 'tiny', email_limit: 1 }
  const file = join(t.testdir(), 'catalog.json')
  await writeFile(file, JSON.stringify({ plans: [pro, tiny, { ...free, email_limit: 7 }] }))
  await cli.json(['plan', 'load', file])
  const { plans } = await cli.json(['plan', 'list'])
  t.match(plans, [{ key: 'pro' }, { key: 'tiny', email_limit: 1 }, { key: 'free', email_limit: 7 }])
  t.equal(plans.length, 3)
  const { id } = await cli.json(['team', 'create', '--name', 'Acme', '--plan', 'tiny'])
  t.match(await cli.json(['team', 'show', id]), { limits: { emails: 1 } })
})

t.test('plan load rejects an invalid catalog and changes nothing', async (t) => {
  const { url } = await testDatabase(t)
  const cli = adminCli({ DATABASE_URL: url })
  await cli.json(['team', 'create', '--name', 'Acme'])
  const refuse = async (input: string, reason: RegExp) =>
    t.match(await cli.fault(['plan', 'load', '-'], { input }), reason)
  const [free, pro] = defaultCatalog.plans
  await refuse('{"plans": [', /standard input isn't valid JSON: /)
  await refuse('[]', /./)
  await refuse(
    JSON.stringify({ plans: [pro] }),
    /The catalog lacks the plan free, which teams use \(1\). Add it, or move those teams first./,
  )
  await refuse(JSON.stringify({ plans: [free, free] }), /two plans with the key free/)
  await refuse(
    JSON.stringify({ plans: [{ ...free, email_limit: -1, kind: 'odd' }] }),
    /kind.*email_limit|email_limit.*kind/,
  )
  await refuse(JSON.stringify({ plans: [{ ...free, price: 1 }] }), /price/)
  t.match(await cli.fault(['plan', 'load', '/nowhere.json']), /file not found/)
  t.match(await cli.json(['plan', 'list']), defaultCatalog)
})

const [free, pro] = defaultCatalog.plans

t.test("plan load names each value outside the columns' range", async (t) => {
  const { url } = await testDatabase(t)
  const cli = adminCli({ DATABASE_URL: url })
  const refuse = async (changes: object, field: string, range = '0 to 2147483647.') =>
    t.equal(
      await cli.fault(['plan', 'load', '-'], {
        input: JSON.stringify({ plans: [free, { ...pro, ...changes }] }),
      }),
      `plans[1].${field} must be a whole number from ${range}`,
    )
  const figures = ['email', 'contact', 'whatsapp', 'domains'].map((what) => `${what}_limit`)
  for (const field of [...figures, 'storage_gb', 'overage_per_1000_cents'])
    await refuse({ [field]: 2_147_483_648 }, field)
  await refuse({ email_limit: 1e300 }, 'email_limit')
  await refuse({ email_limit: '5' }, 'email_limit')
  await refuse({ send_rate_per_second: 1_000_001 }, 'send_rate_per_second', '1 to 1000000.')
  await refuse({ send_rate_per_second: 0 }, 'send_rate_per_second', '1 to 1000000.')
  const tier = { emails: 1, monthly_cents: 1, annual_cents: 1, contacts: 1 }
  for (const field of ['emails', 'monthly_cents', 'annual_cents'] as const) {
    const { contacts, ...tiers } = { ...tier, [field]: 2_147_483_648 }
    await refuse({ tiers: [tiers] }, `tiers[0].${field}`)
  }
  for (const field of ['contacts', 'monthly_cents'] as const) {
    const { emails, annual_cents, ...contacts_tiers } = { ...tier, [field]: 2_147_483_648 }
    await refuse({ contacts_tiers: [contacts_tiers] }, `contacts_tiers[0].${field}`)
  }
  const largest = { ...pro, email_limit: undefined, tiers: [{ emails: 2_147_483_647, monthly_cents: 0 }] }
  await cli.json(['plan', 'load', '-'], { input: JSON.stringify({ plans: [free, largest] }) })
  const { id } = await cli.json(['team', 'create', '--name', 'Acme', '--plan', 'pro'])
  t.match(await cli.json(['team', 'show', id]), { limits: { emails: 2_147_483_647 } })
})

t.test('plan load only requires key, kind and names', async (t) => {
  const { url } = await testDatabase(t)
  const cli = adminCli({ DATABASE_URL: url })
  const words = { en: 'words', fr: 'mots' }
  const plan = {
    key: 'bare',
    kind: 'free',
    name: words,
    blurb: words,
    cta: words,
    benefits: { en: [], fr: [] },
  }
  const { plans } = await cli.json(['plan', 'load', '-'], { input: JSON.stringify({ plans: [plan] }) })
  t.strictSame(plans, [{ ...plan, product: 'transactional', featured: false }])
  t.match(await cli.json(['team', 'create', '--name', 'Acme', '--plan', 'bare']), { plan: 'bare' })
})

t.test('reports an invalid catalog in one line without values', async (t) => {
  const refuse = async (input: string, line: string) =>
    t.equal(await cli.fault(['plan', 'load', '-'], { input }), line)
  const broken = async (changes: string, line: string) =>
    await refuse(`{"plans":[${JSON.stringify(free).slice(0, -1)},${changes}}]}`, line)
  for (const input of ['null', '5', JSON.stringify([free, pro])])
    await refuse(input, 'The catalog must be an object with plans.')
  await refuse('{"__proto__":{},"plans":[]}', 'The catalog has an unknown field: __proto__.')
  await refuse('{"plans":{}}', 'plans must be an array.')
  await refuse('{"plans":[[]]}', 'plans[0] must be an object.')
  await broken('"__proto__":{}', 'plans[0] has an unknown field: __proto__.')
  await broken('"blurb":{"en":"a\\u0000","fr":"b"}', 'plans[0].blurb.en must not contain NUL characters.')
  await broken('"cta":{"en":"a","fr":"\\ud800"}', 'plans[0].cta.fr must not contain lone surrogates.')
  await broken('"benefits":{"en":[7],"fr":[]}', 'plans[0].benefits.en[0] must be a string.')
  await broken('"name":"Free"', 'plans[0].name must have text in en and fr.')
  await broken('"name":{"en":"Free"}', 'plans[0].name.fr is required.')
  await broken('"featured":"yes"', 'plans[0].featured must be true or false.')
  await broken('"tiers":{}', 'plans[0].tiers must be an array.')
  t.match(await cli.json(['plan', 'list']), defaultCatalog)
})
