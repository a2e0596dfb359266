/** Limits of sessions, links and an owner's rights over members. */

import { request } from 'node:http'
import { sql } from 'slonik'
import { auditEntries } from '../../../db/accounts/audit/audit.sql.ts'
import { linkFor, removeMember } from '../../../db/accounts/members/members.ts'
import { membersOfTeam } from '../../../db/accounts/members/people.sql.ts'
import { requestLink } from '../../../db/accounts/members/sign-in.ts'
import { runClock, stopClock } from '../../support/clock.ts'
import { fillContacts } from '../../support/contacts.ts'
import { shows, signedIn, textOf, type Visitor, visitor } from '../../support/dashboard.ts'
import { hold } from '../../support/held.ts'
import { lockWaits } from '../../support/rows.ts'
import { makeTeam, startService, type TestTeam } from '../../support/service.ts'
import t, { type Test } from '../../support/tap.ts'
import { until } from '../../support/worker.ts'

let now = new Date('2026-11-21T12:00:00Z')
const service = await startService(t, { clock: () => now })
const { database } = service

/** Advances the clock, so that hourly limits don't count earlier tests. */
t.beforeEach(() => {
  now = new Date(now.getTime() + 3_600_001)
})

const A_LINK = /http:\/\/localhost:\d+\/dashboard(\/login\/[\w-]{43})/

async function teamWithOwner(): Promise<{ team: TestTeam; owner: Visitor; people: string }> {
  const team = await makeTeam(service, { domain: `${crypto.randomUUID()}.test` })
  const owner = await signedIn(service, { team: team.id, role: 'owner' })
  return { team, owner, people: `/teams/${team.id}/people` }
}

/** Returns the page after a form. */
async function pageAfter(person: Visitor, path: string, form: Record<string, string> = {}) {
  const { status, location } = await person.post(path, form)
  return { status, html: (await person.get(location ?? '')).html }
}

/** Signs in with a link that a page shows. */
async function enterBy(t: Test, html: string, email: string): Promise<Visitor> {
  const person = visitor(service, email)
  t.equal((await person.post(A_LINK.exec(html)?.[1] ?? '', { csrf: '' })).status, 303)
  return person
}

const invite = async (owner: Visitor, people: string, email: string, role = 'owner') =>
  pageAfter(owner, people, { email, role })

/** Signs a user in with a link that only they have seen, like an emailed one. */
async function signedInWholly(t: Test, email: string): Promise<Visitor> {
  const link = await database.transaction((tx) => requestLink({ tx, now }, { email, origin: email }))
  const person = visitor(service, email)
  t.equal((await person.post(`/login/${link?.secret}`, { csrf: '' })).status, 303)
  return person
}

const pageOf = async (owner: Visitor, people: string, email: string): Promise<string> =>
  new RegExp(`href="/dashboard(${people}/[0-9a-f-]{36})">${email}`).exec(
    (await owner.get(people)).html,
  )?.[1] ?? ''

t.test("an invited session can't open teams joined later", async (t) => {
  const { owner, people } = await teamWithOwner()
  const bank = await makeTeam(service, { domain: 'bank.test' })
  const email = 'future.boss@bank.test'
  const thief = await enterBy(t, (await invite(owner, people, email)).html, email)
  const wish = { email, team: bank.id, role: 'owner', operator: false } as const
  await database.transaction((tx) => linkFor({ tx, now, actor: 'cli' }, wish))
  t.equal((await thief.get(`/teams/${bank.id}/emails`)).status, 404)
  t.equal((await thief.post(`/teams/${bank.id}/keys`, { name: 'x', scopes: 'emails:send' })).status, 404)
  const boss = await signedInWholly(t, email)
  t.equal((await boss.get(`/teams/${bank.id}/emails`)).status, 200, 'the next sign-in has it')
})

t.test("a member without a current session isn't shown as invited", async (t) => {
  const { team, owner, people } = await teamWithOwner()
  const email = 'idle@bank3.test'
  const { html } = await invite(owner, people, email, 'viewer')
  const page = await pageOf(owner, people, email)
  const isUnknown = async (who: Visitor, activity: string) => {
    const list = await who.get(people)
    shows(t, list, new RegExp(`${email} viewer \\S+ \\S+ ${activity}`))
    const own = await who.get(page)
    shows(t, own, `${email} viewer No open session in this team.`)
    for (const seen of [list, own, await (await signedIn(service, { operator: true })).get(teamPage)])
      t.notMatch(textOf(seen.html), /\binvited\b|signed in|never/i)
  }
  const teamPage = `/operator/teams/${team.id}`
  await isUnknown(owner, 'link not used yet')
  await (await enterBy(t, html, email)).get(people)
  shows(t, await owner.get(page), /idle@bank3\.test viewer Last active /)
  now = new Date(now.getTime() + 12 * 3_600_000 + 1)
  const again = await signedIn(service, { team: team.id, role: 'owner' })
  await isUnknown(again, 'no open session')
})

t.test("an owner's links can't open other teams of the user", async (t) => {
  const { owner, people } = await teamWithOwner()
  const bank = await makeTeam(service, { domain: 'bank2.test' })
  const email = 'boss@bank2.test'
  const { html } = await invite(owner, people, email)
  const wish = { email, team: bank.id, role: 'owner', operator: false } as const
  await database.transaction((tx) => linkFor({ tx, now, actor: 'cli' }, wish))
  const again = await pageAfter(owner, `${await pageOf(owner, people, email)}/link`)
  for (const page of [html, again.html]) {
    const thief = await enterBy(t, page, email)
    t.equal((await thief.get(`/teams/${bank.id}`)).status, 404)
    t.equal((await thief.get(people)).status, 200)
  }
})

t.test('operator rights and higher roles start at the next sign-in', async (t) => {
  const { team, owner, people } = await teamWithOwner()
  const email = 'ops@example.org'
  const thief = await enterBy(t, (await invite(owner, people, email, 'viewer')).html, email)
  const by = { now, actor: 'cli' }
  const operator = { email, team: null, role: null, operator: true }
  await database.transaction((tx) => linkFor({ ...by, tx }, operator))
  t.equal((await thief.get('/operator/teams')).status, 404)
  await pageAfter(owner, `${await pageOf(owner, people, email)}/role`, { role: 'owner' })
  t.equal((await thief.post(people, { email: 'accomplice@example.org', role: 'owner' })).status, 403)
  const link = await pageAfter(owner, `${await pageOf(owner, people, email)}/link`)
  const later = await enterBy(t, link.html, email)
  const { status: operators } = await later.get('/operator/teams')
  t.equal(operators, 404, 'a link that an owner has seen is of the team alone')
  t.equal((await later.get(`/teams/${team.id}/keys`)).status, 200)
  t.equal((await (await signedInWholly(t, email)).get('/operator/teams')).status, 200)
})

t.test('a link for a team only opens that team', async (t) => {
  const { team } = await teamWithOwner()
  const { team: other } = await teamWithOwner()
  const email = 'both@example.org'
  await signedIn(service, { email, team: other.id, role: 'editor' })
  const both = await signedIn(service, { email, team: team.id, role: 'viewer' })
  t.equal((await both.get(`/teams/${team.id}`)).status, 200)
  t.equal((await both.get(`/teams/${other.id}`)).status, 404)
})

t.test('an owner can only end sessions of their own team', async (t) => {
  const { team, owner, people } = await teamWithOwner()
  const { team: home } = await teamWithOwner()
  const email = 'root@ops.example'
  await linkFor({ tx: database, now, actor: 'cli' }, { email, team: home.id, role: 'owner', operator: true })
  const victim = await signedInWholly(t, email)
  const thief = await enterBy(t, (await invite(owner, people, email)).html, email)
  const both = await signedInWholly(t, email)
  t.equal((await both.get(`/teams/${team.id}`)).status, 200)
  const account = await thief.get('/account')
  const [sessions = ''] = /<section id="table-sessions"[\s\S]*?<\/section>/.exec(account.html) ?? []
  t.equal(sessions.match(/<tr>/g)?.length, 2, 'a head and the thief’s own session')
  await thief.post('/account/end-others')
  const member = await pageOf(owner, people, email)
  shows(t, await pageAfter(owner, `${member}/end-sessions`), 'root@ops.example was signed out of this team.')
  t.equal((await thief.get(`/teams/${team.id}`)).status, 303, 'what is of the team ends')
  for (const person of [victim, both]) {
    t.equal((await person.get(`/teams/${home.id}`)).status, 200)
    t.equal((await person.get('/operator/teams')).status, 200)
  }
  const link = await database.transaction((tx) => requestLink({ tx, now }, { email, origin: 'x' }))
  await owner.post(`${member}/remove`)
  t.equal((await victim.get(`/teams/${home.id}`)).status, 200)
  t.equal((await victim.post(`/login/${link?.secret}`)).status, 303, 'nor does an open link elsewhere')
})

t.test("owners can't see if an invited user is known elsewhere", async (t) => {
  const { owner, people } = await teamWithOwner()
  const { team: other } = await teamWithOwner()
  await signedIn(service, { email: 'X-Known@example.org', team: other.id, role: 'owner' })
  const abroad = await signedInWholly(t, 'x-known@example.org')
  await signedIn(service, { email: 'x-operator@example.org', operator: true })
  const sees = async (name: string): Promise<string[]> => {
    const email = `${name}@example.org`
    const invited = await invite(owner, people, email, 'viewer')
    await abroad.get(`/teams/${other.id}`)
    const list = await owner.get(people)
    const page = await pageOf(owner, people, email)
    const own = await owner.get(page)
    const ended = await pageAfter(owner, `${page}/end-sessions`)
    const row = list.html.split('<tr>').find((part) => part.includes(email)) ?? ''
    const pages = [invited.html, row, own.html, ended.html].map((html) =>
      textOf(html).replace(A_LINK, 'LINK').replaceAll(email, 'WHO'),
    )
    t.equal((await owner.post(`${page}/remove`)).status, 303)
    return pages
  }
  const stranger = await sees('x-stranger')
  t.match(stranger[0], /Give WHO this invitation. It works once, within 7 days, .* LINK/)
  t.strictSame(await sees('x-known'), stranger)
  t.strictSame(await sees('x-operator'), stranger)
})

t.test('invitations work once within 7 days, links within 15 minutes', async (t) => {
  // Links are created at the database's time.
  await stopClock(service.database, now)
  t.teardown(() => runClock(service.database))
  const { owner, people } = await teamWithOwner()
  const email = 'away@example.org'
  const invitation = await invite(owner, people, email, 'viewer')
  const member = await pageOf(owner, people, email)
  const link = await pageAfter(owner, `${member}/link`)
  shows(t, link, /Give away@example.org this link. It works once, within 15 minutes/)
  await owner.post(`${member}/role`, { role: 'owner' })
  const late = await invite(owner, people, 'late@example.org', 'viewer')
  now = new Date(now.getTime() + 7 * 86_400_000 - 1_000)
  const [path, expired] = [invitation, link].map(({ html }) => A_LINK.exec(html)?.[1] ?? '')
  shows(t, await visitor(service).get(path ?? ''), 'sign in as away@example.org')
  const person = await enterBy(t, invitation.html, email)
  t.equal((await person.get(people)).status, 200)
  t.equal((await person.post(people, { email: 'x@example.org', role: 'owner' })).status, 403)
  for (const used of [path, expired])
    t.equal((await visitor(service).post(used ?? '', { csrf: '' })).status, 404)
  now = new Date(now.getTime() + 2_000)
  const gone = await visitor(service).post(A_LINK.exec(late.html)?.[1] ?? '', { csrf: '' })
  t.equal(gone.status, 404)
  shows(t, gone, /has been used or has expired/)
})

t.test("an invitation doesn't end sessions", async (t) => {
  const { owner, people } = await teamWithOwner()
  const { team: other } = await teamWithOwner()
  const person = await signedIn(service, { email: 'calm@example.org', team: other.id, role: 'editor' })
  await invite(owner, people, 'calm@example.org')
  t.equal((await person.get(`/teams/${other.id}`)).status, 200)
})

t.test('removal from a team ends access at once', async (t) => {
  const { team, owner, people } = await teamWithOwner()
  const { team: other } = await teamWithOwner()
  const email = 'leaver@example.org'
  for (const { id } of [team, other]) await signedIn(service, { email, team: id, role: 'editor' })
  const leaver = await signedInWholly(t, email)
  await owner.post(`${await pageOf(owner, people, email)}/remove`)
  t.equal((await leaver.get(`/teams/${team.id}`)).status, 404)
  t.equal((await leaver.get(`/teams/${other.id}`)).status, 200)
  await invite(owner, people, email)
  t.equal((await leaver.get(`/teams/${team.id}`)).status, 404)
})

t.test('a download stops when its reader loses access', async (t) => {
  const { team } = await teamWithOwner()
  const begun = now
  t.teardown(() => {
    now = begun
  })
  const reader = (email: string) => signedIn(service, { email, team: team.id, role: 'viewer' })
  await fillContacts(service, team.id, 15_000, 'x'.repeat(2_000))
  const url = `${service.base}/dashboard/teams/${team.id}/contacts.csv`
  const fileOf = ({ cookies }: Visitor) =>
    fetch(url, { headers: { Cookie: [...cookies].map((pair) => pair.join('=')).join('; ') } })
  const whole = await fileOf(await reader('whole@example.org'))
  t.equal((await whole.text()).split('\r\n').length, 15_002)
  const ends: Record<string, (viewer: Visitor) => unknown> = {
    removed: ({ email }) =>
      database.transaction((tx) => removeMember({ tx, now, actor: 'cli' }, team.id, email)),
    'signed out': (viewer) => viewer.post('/sign-out'),
    late: () => {
      now = new Date(now.getTime() + 7 * 86_400_000 + 1_000)
    },
  }
  for (const [name, end] of Object.entries(ends)) {
    const viewer = await reader(`${name.replace(' ', '-')}@example.org`)
    const answer = await fileOf(viewer)
    // The file is larger than the buffers, so its rest hasn't been read yet.
    await end(viewer)
    await t.rejects(answer.text(), name)
  }
})

t.test('a lower role applies immediately', async (t) => {
  const { team, owner, people } = await teamWithOwner()
  const editor = await signedIn(service, { email: 'former@example.org', team: team.id, role: 'editor' })
  await owner.post(`${await pageOf(owner, people, editor.email)}/role`, { role: 'viewer' })
  t.equal((await editor.post(`/teams/${team.id}/topics`, { name: 'x' })).status, 403)
})

t.test("a concurrent role change doesn't restore a removed member", async (t) => {
  const { team, owner, people } = await teamWithOwner()
  const { email } = await signedIn(service, { email: 'gone@example.org', team: team.id, role: 'editor' })
  const page = await pageOf(owner, people, email)
  const commit = await hold(t, database, (tx) => removeMember({ tx, now, actor: 'cli' }, team.id, email))
  const pressed = owner.post(`${page}/role`, { role: 'owner' })
  await until('the press waits', async () => (await lockWaits(service, 'from memberships')) > 0)
  await commit()
  t.equal((await pressed).status, 404)
  const left = (await membersOfTeam(database, team.id)).map((member) => member.email)
  t.strictSame(left, [owner.email])
})

t.test('inviting an existing member is rejected and keeps the role', async (t) => {
  const { team, owner, people } = await teamWithOwner()
  const second = await signedIn(service, { email: 'second@example.org', team: team.id, role: 'owner' })
  const said = await owner.post(people, { email: 'SECOND@example.org', role: 'viewer' })
  t.equal(said.status, 400)
  shows(t, said, "SECOND@example.org is already a member of this team. Change the role on the member's page.")
  t.equal((await second.get(await pageOf(owner, people, second.email))).status, 200, 'an owner still')
})

t.test('audits every change to members', async (t) => {
  const { team, owner, people } = await teamWithOwner()
  const email = 'traced@example.org'
  await invite(owner, people, email, 'viewer')
  const page = await pageOf(owner, people, email)
  for (const [verb, form] of [['link'], ['role', { role: 'editor' }], ['end-sessions'], ['remove']] as const)
    await owner.post(`${page}/${verb}`, form)
  const lines = await auditEntries(database, { team: team.id, limit: 50 })
  t.strictSame(
    lines
      .flatMap(({ action, actor, subject }) => (subject === email && actor === owner.email ? [action] : []))
      .sort(),
    ['login.link', 'login.link', 'member.add', 'member.add', 'member.end_sessions', 'member.remove'],
  )
  shows(t, await owner.get(`/teams/${team.id}/audit`), ' Signed a member out of the team ')
})

t.test('a sign-in link uses PUBLIC_URL, not the Host header', async (t) => {
  const from = 'Heliograph <login@links.test>'
  const publicUrl = 'http://mail.example.com'
  const mailed = await startService(t, { url: service.url, clock: () => now, dashboard: { from, publicUrl } })
  const team = await makeTeam(mailed, { domain: 'links.test' })
  await signedIn(service, { email: 'mailed@example.org', team: team.id, role: 'viewer' })
  await new Promise<void>((resolve, reject) => {
    const headers = {
      Host: '127.0.0.1:6666',
      'Sec-Fetch-Site': 'same-origin',
      'Content-Type': 'application/x-www-form-urlencoded',
    }
    request(`${mailed.base}/dashboard/login`, { method: 'POST', headers }, (answer) => {
      answer.resume().once('end', resolve)
    })
      .once('error', reject)
      .end('email=mailed@example.org')
  })
  const texts = await database.anyFirst(sql.unsafe`select body_text from emails where team_id = ${team.id}`)
  t.equal(texts.length, 1)
  t.match(texts[0], /\nhttp:\/\/mail\.example\.com\/dashboard\/login\/[\w-]{43}\n/)
})
