/** The verbs of API keys and session tokens. */
import {
  noteKeyUse,
  principalsByKeys,
  principalsBySessions,
} from '../../../db/accounts/credentials/credentials.sql.ts'
import { credentialHash, credentialKind } from '../../../db/accounts/credentials/token.ts'
import { TEXTS } from '../../../db/accounts/texts.ts'
import { adminCli } from '../../support/admin.ts'
import { testDatabase } from '../../support/database.ts'
import { openPool } from '../../support/pool.ts'
import t, { type Test } from '../../support/tap.ts'

const hashOf = (credential: string): string => credentialHash(credential).toString('hex')

async function start(t: Test) {
  const { url } = await testDatabase(t)
  const database = await openPool(t, url, { size: 1 })
  const cli = adminCli({ DATABASE_URL: url })
  const { id } = await cli.json(['team', 'create', '--name', 'Acme'])
  const create = ['key', 'create', id as string, '--name', 'server', '--scopes']
  const principal = async (key: string, now = new Date()) =>
    (await principalsByKeys(database, [hashOf(key)], now))[0] ?? null
  const session = async (token: string, now = new Date()) =>
    (await principalsBySessions(database, [hashOf(token)], now))[0] ?? null
  return { database, cli, id: id as string, create, principal, session }
}

t.test('key create prints the key once and stores its digest', async (t) => {
  const { cli, id, create, principal } = await start(t)
  const made = await cli.json([...create, 'emails:send, contacts:read,emails:send'])
  t.strictSame(Object.keys(made), ['id', 'key', 'name', 'scopes', 'domain', 'expires_at'])
  t.match(made, { name: 'server', scopes: ['emails:send', 'contacts:read'], domain: null, expires_at: null })
  t.equal(credentialKind(made.key), 'key')
  t.match(await principal(made.key), { team_id: id, scopes: ['emails:send', 'contacts:read'], domain: null })
  const listed = await cli.json(['key', 'list', id])
  t.match(listed, [{ id: made.id, prefix: made.key.slice(0, 10), revoked_at: null, last_used_at: null }])
  t.notMatch(JSON.stringify(listed), made.key)
})

t.test("key create limits a key's domain and lifetime", async (t) => {
  const { cli, id, create, principal } = await start(t)
  await cli.json(['domain', 'add', id, 'bücher.example'])
  const flags = ['--domain', 'Bücher.example', '--expires', '2030-01-31T01:00:00+01:00']
  const made = await cli.json([...create, 'emails:send', ...flags])
  t.match(made, { domain: 'xn--bcher-kva.example', expires_at: '2030-01-31T00:00:00.000Z' })
  t.match(await principal(made.key), { domain: 'xn--bcher-kva.example' })
  t.equal(await principal(made.key, new Date('2030-01-31T00:00:00Z')), null)
})

t.test('key create rejects unknown scopes and malformed flags', async (t) => {
  const { cli, create } = await start(t)
  const unknown = await cli.fault([...create, 'emails:send,emails:read'])
  t.match(unknown, /^scopes .*contacts:read, contacts:write, emails:send, .* no scope emails:read\.$/)
  t.match(await cli.fault([...create, ' , ']), /^scopes .*contacts:read/)
  t.match(await cli.fault([...create, 'emails:send', '--domain', 'nodots']), /must be a domain name/)
  t.match(await cli.fault([...create, 'emails:send', '--domain', 'exmaple.com']), /^domain .*exmaple\.com/)
  t.match(await cli.fault([...create, 'emails:send', '--expires', 'tomorrow']), /must be a time such as/)
  const past = await cli.fault([...create, 'emails:send', '--expires', '2026-01-31'])
  t.match(past, /^expires .*2026-01-31T00:00:00\.000Z/)
  t.match(await cli.fault(create.slice(0, -1)), /required option '--scopes <list>' not specified/)
})

t.test('key revoke ends a key immediately', async (t) => {
  const { cli, id, create, principal } = await start(t)
  const made = await cli.json([...create, 'emails:send'])
  const revoked = await cli.json(['key', 'revoke', id, made.id])
  t.match(revoked, { id: made.id, revoked_at: /Z$/ })
  t.equal(await principal(made.key), null)
  t.match(await cli.json(['key', 'revoke', id, made.id]), { revoked_at: revoked.revoked_at })
  const other = await cli.json(['team', 'create', '--name', 'Other'])
  t.match(await cli.fault(['key', 'revoke', other.id, made.id]), /No key .* in this team./)
})

t.test('a key replaced by key rotate works another day', async (t) => {
  const { cli, id, create, principal } = await start(t)
  const team = id
  await cli.json(['domain', 'add', team, 'example.com'])
  const old = await cli.json([...create, 'emails:send,contacts:read', '--domain', 'example.com'])
  const made = await cli.json(['key', 'rotate', team, old.id])
  t.match(made, {
    name: 'server',
    scopes: ['emails:send', 'contacts:read'],
    domain: 'example.com',
    expires_at: null,
  })
  t.not(made.key, old.key)
  t.equal(made.replaces.id, old.id)
  const end = new Date(made.replaces.expires_at)
  t.ok(Math.abs(end.getTime() - Date.now() - 86_400_000) < 3_600_000)
  t.match(await principal(old.key, new Date(end.getTime() - 1)), { team_id: team })
  t.equal(await principal(old.key, end), null)
  t.match(await principal(made.key, end), { team_id: team, domain: 'example.com' })
  const audit = await cli.json(['audit', 'list', '--team', team])
  t.ok(
    audit.some(
      ({ action, subject }: Record<string, string>) => action === 'key.rotate' && subject === 'server',
    ),
  )
})

t.test('key rotate keeps sooner ends, and rejects ended keys', async (t) => {
  const { cli, id, create } = await start(t)
  const soon = new Date(Date.now() + 3_600_000).toISOString()
  const old = await cli.json([...create, 'emails:send', '--expires', soon])
  t.equal((await cli.json(['key', 'rotate', id, old.id])).replaces.expires_at, soon)
  const other = await cli.json([...create, 'emails:send'])
  await cli.json(['key', 'revoke', id, other.id])
  t.match(await cli.fault(['key', 'rotate', id, other.id]), /revoked/)
  const stranger = await cli.json(['team', 'create', '--name', 'Other'])
  t.match(await cli.fault(['key', 'rotate', stranger.id, old.id]), /No key/)
})

t.test('session create issues a token for 30 days', async (t) => {
  const { cli, id, session } = await start(t)
  const before = Date.now()
  const { token, expires_at, ...rest } = await cli.json(['session', 'create', id])
  t.strictSame(Object.keys(rest), ['id'])
  t.equal(credentialKind(token), 'session')
  t.ok(Math.abs(Date.parse(expires_at) - before - 30 * 86_400_000) < 60_000)
  t.match(await session(token), { team_id: id })
  t.equal(await session(token, new Date(expires_at)), null)

  const ada = await cli.json(['session', 'create', id, '--user', 'Ada@Example.com'])
  const again = await cli.json(['session', 'create', id, '--user', 'ada@example.com'])
  t.not(ada.token, again.token)
  const nobody = await cli.fault(['session', 'create', id, '--user', 'nobody'])
  t.match(nobody, /user must be an email address. "nobody"/)
})

t.test("key list shows the hour of each key's last use", async (t) => {
  const { database, cli, id, create, principal } = await start(t)
  const made = await cli.json([...create, 'emails:send'])
  t.match(await principal(made.key), { last_used_at: null })
  const hour = (at: string) => new Date(`2026-01-31T${at}:00Z`)
  await noteKeyUse(database, made.id, hour('10:00'))
  await noteKeyUse(database, made.id, hour('09:00'))
  t.match(await cli.json(['key', 'list', id]), [{ id: made.id, last_used_at: '2026-01-31T10:00:00.000Z' }])
})

t.test('session list shows users, revoke ends one or all', async (t) => {
  const { cli, id, session } = await start(t)
  const create = async (...user: string[]) => await cli.json(['session', 'create', id, ...user])
  const bare = await create()
  const ada = await create('--user', 'Ada@example.com')
  const bob = await create('--user', 'bob@example.com')
  const last = await create()
  t.match(await cli.json(['session', 'list', id]), [
    { id: bare.id, user: null, expires_at: bare.expires_at, revoked_at: null },
    { id: ada.id, user: 'Ada@example.com' },
    { id: bob.id, user: 'bob@example.com' },
    { id: last.id },
  ])
  const ended = async (...wish: string[]) =>
    (await cli.json(['session', 'revoke', id, ...wish])).map((each: { id: string }) => each.id)
  t.strictSame(await ended(bare.id), [bare.id])
  t.strictSame(await ended('--user', 'ada@EXAMPLE.com'), [ada.id])
  t.strictSame((await ended('--all')).sort(), [bob.id, last.id].sort())
  t.strictSame(await ended('--all'), [], 'none is left')
  t.match(await cli.json(['session', 'list', id]), Array(4).fill({ revoked_at: /Z$/ }))
  t.equal(await session(bob.token), null)
})

t.test("session revoke needs a selection of the team's sessions", async (t) => {
  const { cli, id } = await start(t)
  const revoke = async (...wish: string[]) => await cli.fault(['session', 'revoke', ...wish])
  const { id: session } = await cli.json(['session', 'create', id, '--user', 'ada@example.com'])
  const other = (await cli.json(['team', 'create', '--name', 'Other'])).id
  t.equal(await revoke(id), TEXTS.whichSession)
  t.equal(await revoke(id, session, '--all'), TEXTS.whichSession)
  t.match(await revoke(other, session), session)
  t.match(await revoke(id, '--user', 'ada'), /user must be an email address. "ada"/)
  t.strictSame(await cli.json(['session', 'revoke', other, '--user', 'ada@example.com']), [])
  t.match(await cli.json(['session', 'list', id]), [{ revoked_at: null }])
})
