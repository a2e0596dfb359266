/** The doors of the dashboard: links, mail, sessions. OpenID has a file of its own. */
import { sql } from 'slonik'
import { number, object, string } from 'yup'
import { linkFor } from '../../../db/accounts/members/members.ts'
import { resumeTeam, suspendTeam } from '../../../db/accounts/teams/suspend.ts'
import { shows, signedIn, visitor } from '../../support/dashboard.ts'
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

t.test('a link shows a button and changes nothing until that is pressed; then it is used up', async (t) => {
  const path = await linkOf('ana@example.com')
  const ana = visitor(service)
  for (let looks = 0; looks < 3; looks++) shows(t, await ana.get(path), 'sign in as ana@example.com')
  t.equal(ana.cookies.size, 0)
  const entered = await ana.post(path, { csrf: '' })
  t.match(entered, { status: 303, location: /^$/ })
  shows(t, await ana.get(`/teams/${team.id}`), 'Overview')
  const again = await visitor(service).post(path, { csrf: '' })
  t.equal(again.status, 404)
  shows(t, again, 'used already')
})

t.test('a link is good for fifteen minutes', async (t) => {
  const path = await linkOf('late@example.com')
  wait(15 * 60_000 + 1_000)
  t.equal((await visitor(service).get(path)).status, 404)
  t.equal((await visitor(service).post(path, { csrf: '' })).status, 404)
})

t.test('a session ends after twelve hours without use, and after seven days at most', async (t) => {
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

t.test('each sign-in makes a new session, whose cookie no script and no other site can reach', async (t) => {
  const ana = await signedIn(service, { team: team.id, role: 'viewer' })
  const before = ana.cookies.get('heliograph')
  const old = visitor(service)
  old.cookies.set('heliograph', before ?? '')
  const entered = await ana.post(await linkOf(ana.email))
  t.not(ana.cookies.get('heliograph'), before)
  t.match(
    entered.headers.getSetCookie()[0],
    /^heliograph=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=604800$/,
  )
  const age = await database.oneFirst(sql.unsafe`
    select extract(epoch from expires_at - created_at)::int from dashboard_sessions order by id desc limit 1`)
  t.match(
    entered.headers.getSetCookie()[0],
    `; Max-Age=${age}`,
    'the cookie lives as long as the session may',
  )
  t.equal((await old.get('/account')).status, 303, 'the old one is over')
})

t.test('signing out ends the session', async (t) => {
  const ana = await signedIn(service, { team: team.id, role: 'viewer' })
  const kept = visitor(service)
  kept.cookies.set('heliograph', ana.cookies.get('heliograph') ?? '')
  t.match(await ana.post('/sign-out'), { status: 303, location: '/login' })
  t.equal((await kept.get('/account')).status, 303)
})

t.test('other sessions can be ended where there are any, and this one stays', async (t) => {
  const ana = await signedIn(service, { team: team.id, role: 'viewer' })
  t.notMatch((await ana.get('/account')).html, /End all other sessions/)
  const elsewhere = visitor(service)
  await elsewhere.post(await linkOf(ana.email))
  t.match((await ana.get('/account')).html, /End all other sessions/)
  t.equal((await ana.press('/account', '/account/end-others')).status, 303)
  t.notMatch((await ana.get('/account')).html, /End all other sessions/)
  t.equal((await elsewhere.get('/account')).status, 303, 'it is over')
})

t.test('a cookie is no credential of the API, and a session token none of the dashboard', async (t) => {
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

t.test('anybody who asks for a link gets the same answer; only those known get the mail', async (t) => {
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
  shows(t, known, 'If this address belongs to somebody here')
})

t.test('a mail with a link that is over is not sent any more', async (t) => {
  const email = 'waited@example.com'
  await signedIn(service, { team: team.id, role: 'viewer', email })
  await visitor(service).post('/login', { email })
  const { minutes } = await database.one(sql.type(lasting)`
    select extract(epoch from expires_at - created_at)::float8 / 60 as minutes
    from emails where to_emails = array[${email}]`)
  t.equal(minutes, 15)
})

t.test('an address gets five links an hour at most, an address of origin twenty', async (t) => {
  wait(2 * HOUR)
  await signedIn(service, { team: team.id, role: 'viewer', email: 'eager@example.com' })
  const before = (await jobsOf(service, team.id)).length
  const ask = async (email: string, from: string) =>
    await visitor(service).post(
      '/login',
      { email },
      { 'Sec-Fetch-Site': 'same-origin', 'X-Forwarded-For': from },
    )
  await Promise.all(Array.from({ length: 7 }, (_, n) => ask('eager@example.com', `192.0.2.${n}`)))
  t.equal((await jobsOf(service, team.id)).length, before + 5)
  await Promise.all(Array.from({ length: 20 }, (_, n) => ask(`nobody${n}@example.com`, '192.0.2.99')))
  await signedIn(service, { team: team.id, role: 'viewer', email: 'patient@example.com' })
  await ask('patient@example.com', '192.0.2.99')
  t.equal((await jobsOf(service, team.id)).length, before + 5)
  await ask('patient@example.com', '192.0.2.98')
  t.equal((await jobsOf(service, team.id)).length, before + 6)
})

t.test('a form that was sent after its session ended keeps its text until it is sent again', async (t) => {
  const email = 'slow@example.com'
  const ana = await signedIn(service, { team: team.id, role: 'editor', email })
  wait(13 * HOUR)
  const path = `/teams/${team.id}/topics`
  const typed = { name: 'A name that took "long" to find' }
  const kept = await ana.post(path, typed)
  // Once the session is at its end its cookie is gone from the browser, too.
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

t.test('a link by mail leads back to where its owner wanted to go', async (t) => {
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

t.test('an ended membership ends the session at once', async (t) => {
  const ana = await signedIn(service, { team: team.id, role: 'viewer' })
  const { removeMember } = await import('../../../db/accounts/members/members.ts')
  await database.transaction((tx) => removeMember({ tx, now, actor: 'cli' }, team.id, ana.email))
  t.equal((await ana.get(`/teams/${team.id}`)).status, 303)
})

t.test('a link says, on its page and in its mail, as what its owner signs in, and where', async (t) => {
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

t.test(
  'a link by mail goes through a team that may send, where several have verified the domain',
  async (t) => {
    const other = await makeTeam(service)
    const email = 'two-senders@example.com'
    await signedIn(service, { team: other.id, role: 'viewer', email })
    await database.transaction((tx) => suspendTeam(byCli(tx), team.id))
    await visitor(service).post('/login', { email })
    const sender = await database.oneFirst(sql.type(object({ team_id: string().defined() }))`
    select team_id from emails where to_emails = array[${email}]`)
    t.equal(sender, other.id, 'that of a suspended one would wait for longer than the link lives')
    await database.transaction((tx) => resumeTeam(byCli(tx), team.id))
  },
)
