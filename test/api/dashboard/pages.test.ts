/** Pages of keys, members and integration, and what forms have in common. Other files have the other pages. */
import { sql } from 'slonik'
import { SCOPES } from '../../../db/accounts/credentials/credentials.sql.ts'
import { after, type Seen, shows, signedIn, textOf, visitor } from '../../support/dashboard.ts'
import { publishRecord } from '../../support/dkim-record.ts'
import { formTo } from '../../support/forms.ts'
import { anEmail, makeTeam, world } from '../../support/service.ts'
import t from '../../support/tap.ts'
import { until } from '../../support/worker.ts'

const dns = new Map<string, string[]>()
const { service, call, database, team, lastEntry } = await world(t, {
  dashboard: { lookupTxt: async (name) => dns.get(name) ?? [] },
})
const viewer = await signedIn(service, { team: team.id, role: 'viewer' })
const editor = await signedIn(service, { team: team.id, role: 'editor' })
const owner = await signedIn(service, { team: team.id, role: 'owner' })
const at = (path: string): string => `/teams/${team.id}/${path}`

const keyIn = ({ html }: Pick<Seen, 'html'>): string => /hg_[0-9A-Za-z]{49}/.exec(html)?.[0] ?? ''

const keyPage = async (name: string) =>
  new RegExp(`"/dashboard([^"]*/keys/[0-9a-f-]{36})">${name}\\s*<`).exec(
    (await owner.get(at('keys'))).html,
  )?.[1] ?? ''

t.test('a rejected form shows the error at its field', async (t) => {
  const refused = {
    topics: { name: '' },
    keys: { name: '', scopes: 'contacts:read' },
    people: { email: 'no address', role: 'editor' },
    domains: { name: 'no domain' },
    'whatsapp-templates': { definition: '{' },
    webhooks: { name: '', url: 'https://hooks.example.com' },
  }
  for (const [list, form] of Object.entries(refused)) {
    const opened =
      /<details class="act" id="[^"]+" open>(?:(?!<\/details>)[\s\S])*autofocus[\s\S]*?class="fault"/
    t.notMatch((await owner.get(at(list))).html, /<details class="act" id="[^"]+" open>/, list)
    const { status, html } = await owner.post(at(list), form)
    t.equal(status, 400, list)
    t.match(html, opened, list)
  }
})

t.test('errors are alerts, and other notices have the role status', async (t) => {
  const refused = await owner.post(at('topics'), { name: '' })
  t.match(refused.html, '<div class="notice bad" role="alert">')
  const made = await owner.post(at('topics'), { name: 'Announced' })
  const { html } = await owner.get(made.location ?? '')
  t.match(html, /<div class="notice good" role="status">\s*<p>The topic Announced was created/)
  t.notMatch(html, 'role="alert"')
})

t.test('describes each role, and the effect of a removal', async (t) => {
  const roles = [
    /Viewer Sees .*can’t change anything/,
    /Editor Also changes .*broadcasts/,
    /Owner Also manages keys/,
  ]
  for (const role of roles) shows(t, await owner.get(at('people')), role)
  const { html } = await owner.get(at('people'))
  const person = /teams\/[^"]+\/people\/[0-9a-f-]{36}/.exec(html)?.[0] ?? ''
  await owner.post(at('people'), { email: 'second@example.com', role: 'owner' })
  const page = await owner.get(`/${person}`)
  t.match(page.html, /<button class="danger">Remove from the team</)
  shows(t, page, 'Change the role')
})

t.test('settings explain a choice first, and refer to the operator', async (t) => {
  const page = await owner.get(at('settings'))
  shows(t, page, /Stop transactional email for Broadcasts never go .* Hard bounces: /)
  shows(t, page, /Sent to no one Notices are off\. Ask your operator to turn them on\./)
  shows(t, page, / Plan Pro /)
  shows(t, await viewer.get(`/teams/${team.id}`), / Plan Pro\. Resets /)
  t.notMatch(page.html, 'DASHBOARD_FROM')
  const operator = await signedIn(service, { operator: true })
  shows(t, await operator.get(at('settings')), 'Notices are off. Set DASHBOARD_FROM to turn them on.')
  shows(t, await operator.get(`/operator/teams/${team.id}`), / Plan Pro\. This period: /)
})

t.test('a rotated key still works for 24 hours', async (t) => {
  const form = { name: 'rotated', scopes: [...SCOPES] }
  const made = await after(owner, await owner.post(at('keys'), form))
  const old = keyIn(made)
  const path = await keyPage('rotated')
  const sent = await owner.press(path, `${path}/rotate`)
  t.not(sent.location, path)
  const page = await after(owner, sent)
  const key = keyIn(page)
  t.not(key, old)
  shows(t, page, /Scopes everything .* Expires never/)
  for (const each of [key, old]) t.equal((await call('GET', '/v1/contacts', { key: each })).status, 200)
  shows(
    t,
    await owner.get(path),
    /← API keys rotated Stop refreshing Example requests .* Expires .* in 23 hours/,
  )
  t.match(await lastEntry(), { action: 'key.rotate', subject: 'rotated' })
  t.equal((await owner.post(`${path}/rotate`, { expires: '2020-01-01' })).status, 400)
})

t.test('shows a key once, and revokes it', async (t) => {
  const form = { name: 'shop', scopes: ['contacts:read', 'contacts:write'] }
  const page = await after(owner, await owner.post(at('keys'), form))
  const key = keyIn(page)
  t.equal((await call('GET', '/v1/contacts', { key })).status, 200)
  t.notMatch((await owner.get(at('keys'))).html, key)
  await until('its use is noted', async () => /within the last hour/.test((await owner.get(at('keys'))).html))
  const path = await keyPage('shop')
  shows(t, await owner.get(path), /Last used within the last hour Scopes contacts:read, contacts:write/)
  shows(t, await after(owner, await owner.post(`${path}/revoke`)), 'The key shop was revoked.')
  t.notMatch((await owner.get(path)).html, /\/(revoke|rotate)"/)
  t.match(await lastEntry(), { action: 'key.revoke', subject: key.slice(0, 10), detail: 'shop' })
  t.equal((await call('GET', '/v1/contacts', { key })).status, 401)
  t.equal((await owner.post(at('keys'), { name: 'none' })).status, 400)
})

t.test('invites a member, changes their role and removes them', async (t) => {
  const page = await after(
    owner,
    await owner.post(at('people'), { email: 'new@example.com', role: 'viewer' }),
  )
  const link = /\/login\/[\w-]{43}/.exec(page.html)?.[0] ?? ''
  const fresh = visitor(service)
  t.equal((await fresh.post(link, { csrf: '' })).status, 303)
  t.equal((await fresh.get(at('contacts'))).status, 200)
  const person =
    /teams\/[^"]+\/people\/[0-9a-f-]{36}(?=">new@)/.exec((await owner.get(at('people'))).html)?.[0] ?? ''
  t.equal((await fresh.post(at('topics'), { name: 'Not yet' })).status, 403)
  await owner.post(`/${person}/role`, { role: 'editor' })
  const next = await after(owner, await owner.post(`/${person}/link`))
  await fresh.post(/\/login\/[\w-]{43}/.exec(next.html)?.[0] ?? '')
  t.equal((await fresh.post(at('topics'), { name: 'Now' })).status, 303, 'from the next sign-in on')
  await owner.post(`/${person}/remove`)
  t.equal((await fresh.get(at('contacts'))).status, 303)
})

t.test('Members shows when members were added, whatever their role is now', async (t) => {
  const team = await makeTeam(service, { domain: 'added.test' })
  const boss = await signedIn(service, { team: team.id, role: 'owner' })
  const people = `/teams/${team.id}/people`
  await boss.post(people, { email: 'added@example.org', role: 'viewer' })
  await database.query(sql.unsafe`
    update audit_entries set created_at = '2020-02-03T10:00:00Z' where team_id = ${team.id} and subject = 'added@example.org'`)
  const [, member = ''] =
    new RegExp(`(${people}/[0-9a-f-]{36})">added@`).exec((await boss.get(people)).html) ?? []
  t.equal((await boss.post(`${member}/role`, { role: 'editor' })).status, 303)
  shows(
    t,
    await boss.get(people),
    /Added Last active .*added@example\.org editor 3 Feb 2020 link not used yet expires/,
  )
  await database.query(sql.unsafe`delete from audit_entries where team_id = ${team.id}`)
  shows(t, await boss.get(people), /added@example\.org editor – link not used yet expires \S+ \S+ \S+ owner/)
})

t.test("the last owner can't be removed or demoted", async (t) => {
  const alone = await makeTeam(service, { domain: 'alone.test' })
  const boss = await signedIn(service, { team: alone.id, role: 'owner' })
  const html = (await boss.get(`/teams/${alone.id}/people`)).html
  const self = /teams\/[^"]+\/people\/[0-9a-f-]{36}/.exec(html)?.[0] ?? ''
  shows(t, { html }, `${boss.email} you owner`)
  const page = await boss.get(`/${self}`)
  shows(
    t,
    page,
    /This is you, the only owner\. .* Role Owner Can do everything that editors can\. Also manages .* audit log\. Last active /,
  )
  t.notMatch(page.html, /Change the role|Remove from the team|Session tokens/)
  const operator = await signedIn(service, { operator: true })
  shows(t, await operator.get(`/${self}`), 'This is the only owner.')
  t.equal((await boss.post(`/${self}/remove`)).status, 400)
  t.equal((await boss.post(`/${self}/role`, { role: 'viewer' })).status, 400)
})

t.test("the integration page uses the team's domain and template", async (t) => {
  await editor.post(at('templates'), { name: 'Welcome', html: '<p>Hi</p>', text: '' })
  shows(t, await viewer.get(at('integration')), /hello@example\.com.*template_id/)
})

t.test('links to the documentation have valid anchors', async (t) => {
  const docs = await (await fetch(`${service.base}/docs`)).text()
  for (const page of ['integration', 'webhooks']) {
    const [, href, heading] =
      /href="(\/docs(?:#([\w-]+))?)"/.exec((await viewer.get(at(page))).html.split('<main')[1] ?? '') ?? []
    t.ok(href, page)
    if (heading !== undefined) t.ok(docs.includes(`id="${heading}"`), heading)
  }
})

t.test('irreversible actions need confirmation', async (t) => {
  await owner.post(at('domains'), { name: 'asked.test' })
  await publishRecord(dns, owner, at('domains/asked.test'))
  await owner.post(at('domains/asked.test/verify'))
  await owner.post(at('keys'), { name: 'asked', scopes: ['contacts:read'] })
  await owner.post(at('people'), { email: 'asked@example.com', role: 'viewer' })
  await call('POST', '/v1/emails', { key: team.key, body: anEmail() })
  const person = /people\/[0-9a-f-]{36}(?=">asked@)/.exec((await owner.get(at('people'))).html)?.[0] ?? ''
  for (const [path, actions] of [
    ['domains/asked.test', ['rekey', 'delete']],
    [(await keyPage('asked')).replace(at(''), ''), ['revoke']],
    [person, ['role', 'remove']],
    ['emails/all', ['requeue', 'delete']],
  ] as const) {
    const { html } = await owner.get(at(path))
    for (const action of actions) {
      const [, to = ''] = new RegExp(`action="/dashboard([^"]*/${action})[?"]`).exec(html) ?? []
      const changes = action === 'role' ? { role: 'editor' } : {}
      const asked = await owner.ask(to, { ...formTo(html, to), ...changes })
      t.equal(asked.status, 200)
      t.match(asked.html, /<h1[^>]*>[^?]*\?/, `${path} ${action}`)
    }
  }
  const action = at('domains/asked.test/delete')
  const asked = await owner.ask(action, { kept: ['a\nb', '<c>'] })
  t.equal(asked.status, 200)
  shows(t, asked, /Remove asked\.test\? .* Remove domain Go back/)
  t.equal((await owner.get(at('domains/asked.test'))).status, 200, 'it is still there')
  const form = new RegExp(`<form[^>]*${action}"[\\s\\S]*?</form>`).exec(asked.html)?.[0] ?? ''
  const fields = [...form.matchAll(/name="(\w+)" value="([^"]*)"/g)].map(([, name, value]) => [name, value])
  t.match(fields, [['csrf'], ['kept', 'a\nb'], ['kept', '&lt;c&gt;'], ['confirmed', 'yes']])
  t.match(asked.html, `href="/dashboard${at('domains/asked.test')}"`)
  t.equal((await owner.post(action)).status, 303)
  t.equal((await owner.get(at('domains/asked.test'))).status, 404)
})

t.test('an error uses the label of its field', async (t) => {
  const refused = await owner.post(at('webhooks'), { url: 'nowhere', types: '*' })
  const said = textOf(refused.html).match(/\burl (?:must|is)\b/gi)
  t.strictSame([...new Set(said)].length, 1)
  t.ok((said?.length ?? 0) >= 2 && said?.every((words) => words.startsWith('URL ')), String(said))
})

t.test('pages that only owners change name them', async (t) => {
  const own = await makeTeam(service, { domain: 'roles.test' })
  const [boss, reader, writer] = await Promise.all(
    (['owner', 'viewer', 'editor'] as const).map((role) => signedIn(service, { team: own.id, role })),
  )
  const path = (page: string): string => `/teams/${own.id}/${page}`
  await boss?.post(path('webhooks'), { name: 'Shop', url: 'https://hooks.example.com', types: '*' })
  const [key = ''] = /(?<=keys\/)[0-9a-f-]{36}/.exec((await boss?.get(path('keys')))?.html ?? '') ?? []
  for (const [page, what] of Object.entries({
    keys: 'create keys',
    [`keys/${key}`]: 'rotate and revoke keys',
    domains: 'add them',
    webhooks: 'add webhooks',
    people: 'invite and remove members',
  })) {
    for (const other of [reader, writer])
      shows(t, (await other?.get(path(page))) as Seen, `Owners of the team can ${what}.`)
    t.notMatch(textOf((await boss?.get(path(page)))?.html ?? ''), 'Owners of the team can', page)
  }
})
