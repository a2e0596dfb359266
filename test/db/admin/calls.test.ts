/** What all calls of the CLI have in common. */
import { formatFailure } from '../../../db/admin/fault.ts'
import { adminCli } from '../../support/admin.ts'
import { testDatabase } from '../../support/database.ts'
import t from '../../support/tap.ts'

// Calls in a separate process, as operators run them. The other calls share a process.
const OWN = { process: true }
const NOBODY = '00000000-0000-4000-8000-000000000000'

const VERBS: Record<string, string[]> = {
  team: ['create', 'plan', 'rename', 'suspend', 'resume', 'show'],
  domain: ['add', 'verify', 'rekey', 'remove', 'list'],
  key: ['create', 'revoke', 'list'],
  session: ['create', 'list', 'revoke'],
  template: ['create', 'update', 'list', 'show', 'delete'],
  topic: ['create', 'list', 'delete'],
  plan: ['load', 'list'],
  email: ['list', 'find', 'show', 'requeue', 'delete'],
  report: ['list', 'show', 'replay', 'drop'],
  queue: ['status', 'reasons', 'redrive'],
  secret: ['reseal'],
}

t.test('--help describes every noun and every verb, without a database', async (t) => {
  const cli = adminCli({})
  const { code, stdout } = await adminCli({}, OWN).run(['--help'])
  t.equal(code, 0)
  for (const [noun, verbs] of Object.entries(VERBS)) {
    t.match(stdout, new RegExp(`^ {2}${noun} +\\w`, 'm'), noun)
    const help = await cli.run([noun, '--help'])
    for (const verb of verbs) t.match(help.stdout, new RegExp(`^ {2}${verb} .*\\w`, 'm'), `${noun} ${verb}`)
    t.equal(help.code, 0)
  }
  const verb = await cli.run(['help', 'team'])
  t.match(verb, { code: 0, stdout: /create/, stderr: /^$/ })
  t.match((await cli.run(['team', 'plan', '--help'])).stdout, /--period-start/)
})

t.test('the help of requeue is about messages, or about events', async (t) => {
  const help = async (noun: string) => (await adminCli({}).run([noun, 'requeue', '--help'])).stdout
  t.match(await help('email'), /emails: .*provider/)
  t.match(await help('webhook'), /waiting webhook events/)
  t.notMatch(await help('webhook'), /provider|scheduled|expired/)
})

t.test('an invalid call prints one line and exits with 1', async (t) => {
  const settings = { DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' }
  const cli = adminCli(settings)
  t.match(await adminCli(settings, OWN).fault([]), /Specify a noun and a verb/)
  t.match(await cli.fault(['team']), /Specify a noun and a verb/)
  t.match(await cli.fault(['tema']), /unknown command 'tema' \(Did you mean team\?\)/)
  t.match(await cli.fault(['team', 'crate']), /unknown command 'crate'/)
  t.match(await cli.fault(['team', 'create']), /required option '--name <name>' not specified/)
  t.match(await cli.fault(['team', 'create', '--name', 'x', '--nope']), /unknown option '--nope'/)
  t.match(await cli.fault(['team', 'show']), /missing required argument 'team'/)
  t.match(await cli.fault(['team', 'show', 'x']), /must be a UUID/)
  t.match(await cli.fault(['team', 'show', NOBODY, 'more']), /too many arguments/)
})

t.test('reports an unreachable database without its password', async (t) => {
  const settings = { DATABASE_URL: 'postgres://someone:hunter2@127.0.0.1:1/none' }
  const line = await adminCli(settings, OWN).fault(['team', 'show', NOBODY])
  t.match(line, /^Could not reach the database at 127\.0\.0\.1:1: .*ECONNREFUSED.*or set DATABASE_URL\.$/)
  t.notMatch(line, /hunter2/)
})

t.test('names an invalid setting without showing its value', async (t) => {
  const line = await adminCli({ DATABASE_URL: 'mysql://someone:hunter2@host/x' }, OWN).fault([
    'team',
    'show',
    NOBODY,
  ])
  t.match(line, /DATABASE_URL must be a postgres:\/\/ URL/)
  t.notMatch(line, /hunter2/)
  const odd = await adminCli({ DATABASE_URL: 'postgres://someone:hun:ter2@[host/x' }).fault([
    'team',
    'show',
    NOBODY,
  ])
  t.match(odd, /DATABASE_URL/)
  t.notMatch(odd, /ter2/)
})

t.test('every verb about a team fails for an unknown team', async (t) => {
  const { url } = await testDatabase(t)
  const cli = adminCli({ DATABASE_URL: url })
  const calls = [
    ['team', 'show', NOBODY],
    ['team', 'plan', NOBODY, '--plan', 'pro'],
    ['team', 'rename', NOBODY, '--name', 'n'],
    ['team', 'suspend', NOBODY],
    ['domain', 'add', NOBODY, 'a.test'],
    ['domain', 'verify', NOBODY, 'a.test'],
    ['domain', 'remove', NOBODY, 'a.test'],
    ['domain', 'list', NOBODY],
    ['key', 'create', NOBODY, '--name', 'k', '--scopes', 'emails:send'],
    ['key', 'revoke', NOBODY, NOBODY],
    ['key', 'list', NOBODY],
    ['session', 'create', NOBODY],
    ['template', 'create', NOBODY, '--name', 't', '--html', '-'],
    ['template', 'update', NOBODY, NOBODY, '--html', '-'],
    ['template', 'list', NOBODY],
    ['topic', 'create', NOBODY, '--name', 'n'],
    ['topic', 'list', NOBODY],
    ['topic', 'delete', NOBODY, NOBODY],
    ['email', 'list', NOBODY],
    ['email', 'show', NOBODY, NOBODY],
    ['email', 'requeue', NOBODY, NOBODY],
    ['email', 'delete', NOBODY, NOBODY],
    ...['email', 'whatsapp'].flatMap((noun) => [
      [noun, 'cancel', NOBODY, NOBODY],
      [noun, 'reschedule', NOBODY, NOBODY, '--at', '2030-01-01T00:00:00Z'],
    ]),
  ]
  for (const call of calls)
    t.equal(await cli.fault(call, { input: '<p>x</p>' }), `No team ${NOBODY}.`, call.join(' '))
})

t.test('reports a query that the database cancelled', async (t) => {
  const stopped = Object.assign(new Error('canceling statement due to statement timeout'), { code: '57014' })
  const line = await formatFailure(stopped, undefined)
  t.match(line, /cancelled after 10 seconds.* Narrow it down/)
  t.notMatch(line, /reach/)
})

t.test('accepts a DATABASE_URL with several servers', async (t) => {
  const { url } = await testDatabase(t)
  const { host } = new URL(url)
  const cli = adminCli({ DATABASE_URL: url.replace(host, `${host},${host}`) })
  const { id } = await cli.json(['team', 'create', '--name', 'A'])
  t.match(await cli.json(['webhook', 'add', id, '--url', 'https://a.example/']), {
    url: 'https://a.example/',
  })
  const login = async (env = {}) => (await cli.json(['login', 'ann@a.test', '--operator'], { env })).url
  t.match(await login(), /^http:\/\/localhost:\d+\/dashboard/)
  t.match(await login({ PORT: '4400' }), /^http:\/\/localhost:4400\//)
  t.match(await login({ PUBLIC_URL: 'https://mail.example.com' }), /^https:\/\/mail\.example\.com\//)
  const line = await cli.fault(['domain', 'add', id, 'a.test'], { env: { SECRET_KEY: '' } })
  t.match(line, /^SECRET_KEY is not set/)
})

t.test('rejects an empty --domain of a webhook', async (t) => {
  const { url } = await testDatabase(t)
  const cli = adminCli({ DATABASE_URL: url })
  const { id } = await cli.json(['team', 'create', '--name', 'A'])
  await cli.json(['domain', 'add', id, 'a.test'])
  const add = ['webhook', 'add', id, '--url', 'https://a.example/', '--domain']
  t.match(await cli.fault([...add, '']), /--domain.* must not be empty/)
  const { id: webhook } = await cli.json([...add, 'a.test'])
  t.match(await cli.fault(['webhook', 'set', id, webhook, '--domain', '']), /--domain.* must not be empty/)
  t.match(await cli.json(['webhook', 'show', id, webhook]), { domain: 'a.test' })
  t.match(await cli.json(['webhook', 'set', id, webhook, '--domain', 'none']), { domain: null })
})
