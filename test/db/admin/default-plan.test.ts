/** DEFAULT_PLAN: the plan of new teams, checked when the release, a web process and the CLI start. */
import { join } from 'node:path'
import { adminCli } from '../../support/admin.ts'
import { bareEnvironment, SECRET_KEY } from '../../support/environment.ts'
import { ROOT } from '../../support/program.ts'
import { runProgram } from '../../support/programs.ts'
import { startService } from '../../support/service.ts'
import t from '../../support/tap.ts'

/** One line with the setting, the unknown plan and the available ones. */
const UNKNOWN = /^ *DEFAULT_PLAN: (?!plan\b).*\(free, pro, enterprise\).*\bgone$/m

t.test('new teams get DEFAULT_PLAN, and the free plan without it', async (t) => {
  const { url } = await startService(t)
  const create = ['team', 'create', '--name', 'A team']
  t.match(await adminCli({ DATABASE_URL: url }).json(create), { plan: 'free' })
  const cli = adminCli({ DATABASE_URL: url, DEFAULT_PLAN: 'pro' })
  t.match(await cli.json(create), { plan: 'pro' })
  t.match(await cli.json([...create, '--plan', 'enterprise']), { plan: 'enterprise' })
})

t.test('an unknown DEFAULT_PLAN stops release, web and CLI', async (t) => {
  const { url } = await startService(t)
  t.match(await adminCli({ DATABASE_URL: url, DEFAULT_PLAN: 'gone' }).fault(['team', 'list']), UNKNOWN)
  const env = { ...bareEnvironment(), DATABASE_URL: url, DEFAULT_PLAN: 'gone', SECRET_KEY, PORT: '0' }
  for (const file of ['db/migrate.ts', 'api/main.ts']) {
    const ended = await runProgram(process.execPath, [join(ROOT, file)], { env }).catch((error) => error)
    t.equal(ended.code, 1, file)
    t.match(ended.stderr, UNKNOWN, file)
  }
})
