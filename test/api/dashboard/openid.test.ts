/** Sign-in with an OpenID provider. */
import { sql } from 'slonik'
import { unseal } from '../../../api/dashboard/server/guard.ts'
import { createOpenId } from '../../../api/dashboard/server/openid.ts'
import { shows, signedIn, type Visitor, visitor } from '../../support/dashboard.ts'
import { startFlood } from '../../support/flood.ts'
import { startIssuer } from '../../support/openid-issuer.ts'
import { startService, world } from '../../support/service.ts'
import t from '../../support/tap.ts'

const issuer = await startIssuer(t)
const { url, clientId, clientSecret } = issuer
const openid = createOpenId({ issuer: url, clientId, clientSecret, only: true })
const { service, team } = await world(t, { dashboard: { openid, from: 'login@example.com' } })
await signedIn(service, { team: team.id, role: 'editor', email: 'ana@example.com' })

/** Signs in at the provider. @returns the path of the callback. */
async function leave(person: Visitor, returnTo = ''): Promise<string> {
  const { location } = await person.get(`/openid?${new URLSearchParams({ return_to: returnTo })}`)
  const answered = await fetch(location ?? '', { redirect: 'manual' })
  const back = new URL(answered.headers.get('location') ?? '')
  return back.pathname.replace('/dashboard', '') + back.search
}

t.test('signs in a member with a verified address', async (t) => {
  const ana = visitor(service)
  shows(t, await ana.get('/login'), 'Sign in with your account')
  t.notMatch((await ana.get('/login')).html, /type="email"/, 'OIDC_ONLY closes the mail')
  const back = await leave(ana, `/dashboard/teams/${team.id}/emails`)
  t.match(await ana.get(back), { status: 303, location: `/teams/${team.id}/emails` })
  shows(t, await ana.get(`/teams/${team.id}`), 'Overview')
  t.equal(ana.cookies.has('heliograph-openid'), false)
})

t.test('refers non-members to an owner', async (t) => {
  issuer.next = { somebody: { sub: '2', email: 'stranger@example.com', email_verified: true } }
  const stranger = visitor(service)
  const refused = await stranger.get(await leave(stranger))
  t.equal(refused.status, 403)
  shows(t, refused, /No member signs in with stranger@example\.com\. Ask an owner of your team/)
  t.equal(stranger.cookies.has('heliograph'), false)
})

t.test("rejects an address that the provider hasn't verified", async (t) => {
  issuer.next = { somebody: { sub: '3', email: 'ana@example.com', email_verified: false } }
  const liar = visitor(service)
  const refused = await liar.get(await leave(liar))
  t.equal(refused.status, 403)
  shows(t, refused, 'Your provider reports that ana@example.com isn’t verified.')
})

t.test('rejects a provider without email_verified, and explains why', async (t) => {
  issuer.next = { somebody: { sub: '5', email: 'ana@example.com' } }
  const person = visitor(service)
  const refused = await person.get(await leave(person))
  t.equal(refused.status, 403)
  shows(t, refused, /doesn’t report whether ana@example\.com is verified.*send the claim email_verified/)
})

t.test('accepts "true" as a string for email_verified', async (t) => {
  await signedIn(service, { team: team.id, role: 'viewer', email: 'word@example.com' })
  issuer.next = { somebody: { sub: '6', email: 'word@example.com', email_verified: 'true' } }
  const word = visitor(service)
  t.equal((await word.get(await leave(word))).status, 303)
})

t.test('rejects a known address with another subject', async (t) => {
  issuer.next = { somebody: { sub: '4', email: 'ana@example.com', email_verified: true } }
  const heir = visitor(service)
  t.equal((await heir.get(await leave(heir))).status, 403)
  issuer.next = { somebody: { sub: '1', email: 'renamed@example.com', email_verified: true } }
  const ana = visitor(service)
  t.equal((await ana.get(await leave(ana))).status, 303, 'the person stays the same under another address')
})

t.test("a database error isn't reported as an unknown user", async (t) => {
  issuer.next = { somebody: { sub: '1', email: 'ana@example.com', email_verified: true } }
  const ana = visitor(service)
  const back = await leave(ana)
  await service.database.query(sql.unsafe`alter table openid_identities rename to gone`)
  const page = await ana.get(back)
  await service.database.query(sql.unsafe`alter table gone rename to openid_identities`)
  t.equal(page.status, 500)
  t.notMatch(page.html, /No member signs in/)
})

t.test('a response works once, in its browser, with its state', async (t) => {
  issuer.next = { somebody: { sub: '1', email: 'ana@example.com', email_verified: true } }
  const ana = visitor(service)
  const back = await leave(ana)
  const thief = visitor(service)
  t.equal((await thief.get(back)).status, 400, 'another browser')
  t.equal((await ana.get(back.replace(/state=[^&]+/, 'state=other'))).status, 400, 'another state')
  const kept = ana.cookies.get('heliograph-openid') ?? ''
  t.equal((await ana.get(back)).status, 303)
  thief.cookies.set('heliograph-openid', kept)
  t.equal((await thief.get(back)).status, 400, 'a code twice')
  for (const lie of [
    { nonce: 'other' },
    { aud: 'somebody else' },
    { iss: 'https://evil.test' },
    { exp: 1 },
  ]) {
    issuer.next = { ...issuer.next, lie }
    const person = visitor(service)
    t.equal((await person.get(await leave(person))).status, 400, JSON.stringify(lie))
  }
})

t.test('shows a page if the provider is unavailable', async (t) => {
  const away = createOpenId({ issuer: 'http://127.0.0.1:9', clientId, clientSecret, only: false })
  const other = await startService(t, { url: service.url, dashboard: { openid: away } })
  t.equal((await visitor(other).get('/openid')).status, 503)
})

t.test('shows a page for an endless or compressed provider response', async (t) => {
  for (const kind of ['endless', 'packed'] as const) {
    const flood = await startFlood(t, kind)
    const hostile = createOpenId({ issuer: flood.url, clientId, clientSecret, only: false })
    await t.rejects(hostile.begin(new URL('http://127.0.0.1'), ''), {
      cause: { message: kind === 'packed' ? /is compressed/ : 'the response is larger than 1 MiB' },
    })
    const other = await startService(t, { url: service.url, dashboard: { openid: hostile } })
    t.equal((await visitor(other).get('/openid')).status, 503)
    t.ok(flood.sent() < 16 * 1024 * 1024)
  }
})

t.test("an encrypted cookie isn't valid as another one", async (t) => {
  const ana = await signedIn(service, { team: team.id, role: 'editor' })
  await ana.post(`/teams/${team.id}/topics`, { name: 'News' })
  const notice = ana.cookies.get('heliograph-notice') ?? ''
  shows(t, await ana.get(`/teams/${team.id}/topics`), 'News')
  await ana.get('/openid')
  const flow = ana.cookies.get('heliograph-openid') ?? ''
  t.not(flow, '')
  const swapped = visitor(service)
  swapped.cookies.set('heliograph-openid', notice)
  t.equal((await swapped.get('/openid/callback?code=x&state=x')).status, 400)
  const { secrets } = service.deps
  for (const [name, other, value] of [
    ['openid-cookie', 'notice-cookie', notice],
    ['notice-cookie', 'openid-cookie', flow],
  ] as const) {
    t.equal(unseal(secrets, name, value), null)
    t.not(unseal(secrets, other, value), null)
  }
})
