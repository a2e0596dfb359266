/** The CLI's verbs about the plan catalog. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import defaultCatalog from '../../../db/plans/default-catalog.json' with { type: 'json' }
import { adminCli } from '../../support/admin.ts'
import { testDatabase } from '../../support/database.ts'

t.test('plan list prints what plan load takes: the round trip changes nothing', async (t) => {
  const { url } = await testDatabase(t)
  const cli = adminCli({ DATABASE_URL: url })
  const { stdout } = await cli.run(['plan', 'list'])
  const listed = JSON.parse(stdout)
  t.same(
    listed.plans.map((plan: { key: string }) => plan.key),
    defaultCatalog.plans.map((plan) => plan.key),
  )
  t.match(listed, defaultCatalog)
  t.same(await cli.json(['plan', 'load', '-'], { input: stdout }), listed)
  t.equal((await cli.run(['plan', 'list'])).stdout, stdout)
})

t.test('plan load replaces the catalog: plans come, change, move and go', async (t) => {
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

t.test('plan load refuses a catalog with a fault and changes nothing', async (t) => {
  const { url } = await testDatabase(t)
  const cli = adminCli({ DATABASE_URL: url })
  await cli.json(['team', 'create', '--name', 'Acme'])
  const refuse = async (input: string, reason: RegExp) =>
    t.match(await cli.fault(['plan', 'load', '-'], { input }), reason)
  const [free, pro] = defaultCatalog.plans
  await refuse('{"plans": [', /standard input is not JSON: /)
  await refuse('[]', /./)
  await refuse(JSON.stringify({ plans: [pro] }), /the catalog lacks the plan free, which 1 teams have/)
  await refuse(JSON.stringify({ plans: [free, free] }), /two plans with the key free/)
  await refuse(
    JSON.stringify({ plans: [{ ...free, email_limit: -1, kind: 'odd' }] }),
    /kind.*email_limit|email_limit.*kind/,
  )
  await refuse(JSON.stringify({ plans: [{ ...free, price: 1 }] }), /price/)
  t.match(await cli.fault(['plan', 'load', '/nowhere.json']), /there is no such file/)
  t.match(await cli.json(['plan', 'list']), defaultCatalog)
})
