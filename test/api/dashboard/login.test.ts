/** Sign-in links and sessions. login-limits.test.ts has the limits, and openid.test.ts has OpenID. */
import { sql } from 'slonik'
import { number, object, string } from 'yup'
import { linkFor } from '../../../db/accounts/members/members.ts'
import { resumeTeam, suspendTeam } from '../../../db/accounts/teams/suspend.ts'
import { shows, signedIn, textOf, visitor } from '../../support/dashboard.ts'
import { jobsOf } from '../../support/rows.ts'
import { byCli, makeTeam, world } from '../../support/service.ts'
import t from '../../support/tap.ts'

const mailed = object({ body_text: string().defined(), html: string().defined() })
const lasting = object({ minutes: number().defined().nullable() })

let now = new Date('2026-11-21T12:00:00Z')
const woken: string[] = []
const { service, database, call, team } = await world(t, {
  clock: () => now,
  wake: (job) => void woken.push(job),
  dashboard: { from: 'Heliograph <login@example.com>' },
})

const wait = (ms: number): void => {
  now = new Date(now.getTime() + ms)
}
const HOUR = 3_600_000

const linkOf = async (email: string): Promise<string> => {
  const wish = { email, team: team.id, role: 'viewer', operator: false } as const
  const { secret } = await database.transaction((tx) => linkFor({ tx, now, actor: 'cli' }, wish))
  return `/login/${secret}`
}

t.test('opening a link changes nothing until its button is clicked', async (t) => {
  const path = await linkOf('ana@example.com')
  const ana = visitor(service)
  for (let looks = 0; looks < 3; looks++) shows(t, await ana.get(path), 'sign in as ana@example.com')
  t.equal(ana.cookies.size, 0)
  const entered = await ana.post(path, { csrf: '' })
  t.match(entered, { status: 303, location: /^$/ })
  shows(t, await ana.get(`/teams/${team.id}`), 'Overview')
  const again = await visitor(service).post(path, { csrf: '' })
  t.equal(again.status, 404)
  shows(t, again, 'This link has been used or has expired')
})

t.test('a link expires after 15 minutes', async (t) => {
  const path = await linkOf('late@example.com')
  wait(15 * 60_000 + 1_000)
  t.equal((await visitor(service).get(path)).status, 404)
  t.equal((await visitor(service).post(path, { csrf: '' })).status, 404)
})

t.test('a session ends after 12 idle hours, or 7 days', async (t) => {
  const ana = await signedIn(service, { team: team.id, role: 'viewer' })
  for (let hours = 0; hours < 7 * 24 - 11; hours += 11) {
    t.equal((await ana.get(`/teams/${team.id}`)).status, 200, `after ${hours} h`)
    wait(11 * HOUR)
  }
  wait(11 * HOUR)
  t.match(await ana.get(`/teams/${team.id}`), { status: 303, location: /^\/login/ })
  const idle = await signedIn(service, { team: team.id, role: 'viewer' })
  wait(12 * HOUR + 60_000)
  t.match(await idle.get(`/teams/${team.id}`), { status: 303, location: /^\/login/ })
})

t.test('each sign-in creates a session with an HttpOnly, SameSite cookie', async (t) => {
  const ana = await signedIn(service, { team: team.id, role: 'viewer' })
  const before = ana.cookies.get('heliograph')
  const old = visitor(service)
  old.cookies.set('heliograph', before ?? '')
  const entered = await ana.post(await linkOf(ana.email))
  t.not(ana.cookies.get('heliograph'), before)
  const [cookie] = entered.headers.getSetCookie()
  t.match(cookie, /^heliograph=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=604800$/)
  const age = await database.oneFirst(sql.unsafe`
    select extract(epoch from expires_at - created_at)::int from dashboard_sessions order by id desc limit 1`)
  t.match(cookie, `; Max-Age=${age}`, 'the cookie lives as long as the session may')
  t.equal((await old.get('/account')).status, 303, 'the old one is over')
})

t.test('signing out ends the session', async (t) => {
  const ana = await signedIn(service, { team: team.id, role: 'viewer' })
  const kept = visitor(service)
  kept.cookies.set('heliograph', ana.cookies.get('heliograph') ?? '')
  t.match(await ana.post('/sign-out'), { status: 303, location: '/login' })
  t.equal((await kept.get('/account')).status, 303)
})

t.test('ends other sessions and keeps this one', async (t) => {
  const ana = await signedIn(service, { team: team.id, role: 'viewer' })
  t.notMatch((await ana.get('/account')).html, /End all other sessions/)
  const elsewhere = visitor(service)
  await elsewhere.post(await linkOf(ana.email))
  t.match((await ana.get('/account')).html, /End all other sessions/)
  t.equal((await ana.press('/account', '/account/end-others')).status, 303)
  t.notMatch((await ana.get('/account')).html, /End all other sessions/)
  t.equal((await elsewhere.get('/account')).status, 303, 'it is over')
})

t.test('ends one other session of the same user', async (t) => {
  const ana = await signedIn(service, { team: team.id, role: 'viewer' })
  const [second, third] = [visitor(service), visitor(service)]
  for (const each of [second, third]) await each.post(await linkOf(ana.email))
  const ends = async () =>
    [
      ...(await ana.get('/account')).html.matchAll(/action="\/dashboard(\/account\/sessions\/[\w-]+\/end)/g),
    ].map(([, path = '']) => path)
  const [first = '', ...others] = await ends()
  t.equal(others.length, 1, 'not its own')
  const { html } = await ana.get('/account')
  t.match(html.match(/<button class="small quiet">End session/g), { length: 2 })
  t.match(textOf(html).match(/ this browser \d+ \w+ \d+, [\d:]+ UTC now /g), { length: 1 }, 'its own')
  const stranger = await signedIn(service, { team: team.id, role: 'owner' })
  t.equal((await stranger.post(first)).status, 404)
  t.equal((await ana.post('/account/sessions/x/end')).status, 404)
  t.equal((await ana.press('/account', first)).status, 303)
  t.strictSame(await ends(), others)
  const left = await Promise.all([second, third].map(async (each) => (await each.get('/account')).status))
  t.strictSame(left.sort(), [200, 303])
  t.equal((await ana.post(first)).status, 404, 'it has ended')
})

t.test('the API rejects cookies, and the dashboard rejects API keys', async (t) => {
  const ana = await signedIn(service, { team: team.id, role: 'owner' })
  const secret = ana.cookies.get('heliograph') ?? ''
  const reply = await call('POST', '/v1/marketing/unsubscribe', {
    body: { email: 'a@example.com' },
    headers: { Cookie: `heliograph=${secret}`, Authorization: `Bearer ${secret}` },
  })
  t.equal(reply.status, 401)
  const other = visitor(service)
  other.cookies.set('heliograph', team.key)
  t.equal((await other.get('/account')).status, 303)
})

t.test("a link request doesn't reveal if the address is known", async (t) => {
  await signedIn(service, { team: team.id, role: 'viewer', email: 'known@example.com' })
  const before = (await jobsOf(service, team.id)).length
  service.deps.metrics.take()
  const known = await visitor(service).post('/login', { email: 'KNOWN@example.com' })
  t.strictSame(woken, ['deliver-email'], 'a worker is woken for it')
  const counted = service.deps.metrics.take().find(({ figure }) => figure === 'heliograph_accepted_total')
  t.match(counted, { labels: 'channel="email"', values: [1] })
  t.equal((await jobsOf(service, team.id)).length, before + 1)
  const unknown = await visitor(service).post('/login', { email: 'unknown@example.com' })
  const nonsense = await visitor(service).post('/login', { email: 'nonsense' })
  t.equal((await jobsOf(service, team.id)).length, before + 1)
  t.equal(unknown.html, known.html)
  t.equal(nonsense.html, known.html)
  shows(t, known, 'If this address has access')
})

t.test('the email with a link expires with it', async (t) => {
  const email = 'waited@example.com'
  await signedIn(service, { team: team.id, role: 'viewer', email })
  await visitor(service).post('/login', { email })
  const { minutes } = await database.one(sql.type(lasting)`
    select extract(epoch from expires_at - created_at)::float8 / 60 as minutes
    from emails where to_emails = array[${email}]`)
  t.equal(minutes, 15)
})
t.test('a form of an ended session keeps its text', async (t) => {
  const email = 'slow@example.com'
  const ana = await signedIn(service, { team: team.id, role: 'editor', email })
  wait(13 * HOUR)
  const path = `/teams/${team.id}/topics`
  const typed = { name: 'A name that took "long" to find' }
  const kept = await ana.post(path, typed)
  // The second request has no cookie, because browsers drop it when the session expires.
  for (const { status, html } of [kept, await visitor(service).post(path, typed)]) {
    t.equal(status, 403)
    shows(t, { html }, 'Your session has ended Nothing was changed')
    t.ok(html.includes('name="name" value="A name that took &quot;long&quot; to find"'))
  }
  const mark = /name="(kept-[\w-]+)"/.exec(kept.html)?.[1] ?? ''
  t.equal((await ana.post(path, { ...typed, [mark]: 'yes' })).status, 403, 'not signed in yet')
  const wish = { email, team: team.id, role: 'editor', operator: false } as const
  const { secret } = await database.transaction((tx) => linkFor({ tx, now, actor: 'cli' }, wish))
  await ana.post(`/login/${secret}`, { csrf: '' })
  const asked = await ana.post(path, { ...typed, [mark]: 'yes', csrf: '' })
  shows(t, asked, 'Send this form now?')
  t.notMatch((await ana.get(path)).html, 'A name that took', 'asked first')
  t.equal((await ana.post(path, { ...typed, confirmed: 'yes' })).status, 303)
  t.match((await ana.get(path)).html, 'A name that took')
})

t.test('an emailed sign-in link returns to the requested page', async (t) => {
  const email = 'back@example.com'
  await signedIn(service, { team: team.id, role: 'viewer', email })
  const wanted = `/teams/${team.id}/emails?tag=kept`
  const form = await visitor(service).get(
    `/login?${new URLSearchParams({ return_to: `/dashboard${wanted}` })}`,
  )
  const returnTo = /name="return_to" value="([^"]*)"/.exec(form.html)?.[1]?.replace('&#x3D;', '=') ?? ''
  await visitor(service).post('/login', { email, return_to: returnTo })
  const text = await database.oneFirst(sql.unsafe`
    select body_text from emails where to_emails = array[${email}]`)
  const link = /\/login\/\S+/.exec(String(text))?.[0] ?? ''
  const person = visitor(service)
  const action = /action="\/dashboard([^"]+)"/
    .exec((await person.get(link)).html)?.[1]
    ?.replaceAll('&#x3D;', '=')
  t.match(await person.post(action ?? '', { csrf: '' }), { status: 303, location: wanted })
})

t.test('sign-in only returns to paths of the dashboard', async (t) => {
  for (const [returnTo, location] of [
    ['/dashboard?x=1', '/dashboard?x=1'],
    ['/dashboard/?x=1', '/dashboard/?x=1'],
    ['/dashboard//evil.test', '/dashboard//evil.test'],
    ['//evil.test/dashboard?x=1', '/dashboard'],
  ] as const) {
    const path = `${await linkOf('ana@example.com')}?${new URLSearchParams({ return_to: returnTo })}`
    const { status, headers } = await visitor(service).post(path, { csrf: '' })
    t.strictSame([status, headers.get('location')], [303, location])
  }
})

t.test('an ended membership ends the session at once', async (t) => {
  const ana = await signedIn(service, { team: team.id, role: 'viewer' })
  const { removeMember } = await import('../../../db/accounts/members/members.ts')
  await database.transaction((tx) => removeMember({ tx, now, actor: 'cli' }, team.id, ana.email))
  t.equal((await ana.get(`/teams/${team.id}`)).status, 303)
})

t.test("a link's page and email name user, roles and teams", async (t) => {
  const email = 'placed@example.com'
  const other = await makeTeam(service, { domain: 'other.test' })
  await database.query(sql.unsafe`update teams set name = 'Bread & Sons' where id = ${other.id}`)
  await signedIn(service, { team: team.id, role: 'viewer', email })
  const wish = { email, team: other.id, role: 'owner', operator: false } as const
  const { secret } = await database.transaction((tx) => linkFor({ tx, now, actor: 'cli' }, wish))
  const page = await visitor(service).get(`/login/${secret}`)
  shows(t, page, `You are about to sign in as ${email}, owner of Bread & Sons.`)
  t.notMatch(page.html, 'A team', 'a link that others have seen names its own team alone')
  await visitor(service).post('/login', { email })
  const { body_text, html } = await database.one(sql.type(mailed)`
    select body_text, html from emails where to_emails = array[${email}]`)
  const words = `as ${email}, viewer of A team and owner of Bread`
  t.match(body_text, `${words} & Sons.`)
  t.match(html, `${words} &amp; Sons.`)
  shows(t, await visitor(service).get(/\/login\/\S+/.exec(body_text)?.[0] ?? ''), words)
})

t.test("sends links from a team that isn't suspended", async (t) => {
  const other = await makeTeam(service)
  const email = 'two-senders@example.com'
  await signedIn(service, { team: other.id, role: 'viewer', email })
  await database.transaction((tx) => suspendTeam(byCli(tx), team.id))
  await visitor(service).post('/login', { email })
  const sender = await database.oneFirst(sql.type(object({ team_id: string().defined() }))`
    select team_id from emails where to_emails = array[${email}]`)
  t.equal(sender, other.id, 'that of a suspended one would wait for longer than the link lives')
  await database.transaction((tx) => resumeTeam(byCli(tx), team.id))
})
