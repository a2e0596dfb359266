/**
 * Access to every page by role. The expected access is in a separate table (test/support/page-rights.ts), so
 * that an accidental change fails.
 */
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { object, string } from 'yup'
import { PAGES } from '../../../api/dashboard/routes.ts'
import type { Page } from '../../../api/dashboard/server/page.ts'
import { resumeTeam, suspendTeam } from '../../../db/accounts/teams/suspend.ts'
import { idRow } from '../../../db/postgres/rows.ts'
import { adminCli } from '../../support/admin.ts'
import { broadcastingOf } from '../../support/broadcasting.ts'
import { type Seen, shows, signedIn, visitor } from '../../support/dashboard.ts'
import { RIGHTS, rightOf } from '../../support/page-rights.ts'
import { makeTeam, sendEmail, world } from '../../support/service.ts'
import t, { type Test } from '../../support/tap.ts'
import { makeTemplate, sendWhatsapp } from '../../support/whatsapp.ts'

const { service, team } = await world(t)
const other = await makeTeam(service)

const people = {
  stranger: visitor(service),
  'other team': await signedIn(service, { team: other.id, role: 'owner' }),
  viewer: await signedIn(service, { team: team.id, role: 'viewer' }),
  editor: await signedIn(service, { team: team.id, role: 'editor' }),
  owner: await signedIn(service, { team: team.id, role: 'owner' }),
  operator: await signedIn(service, { operator: true }),
}
type Who = keyof typeof people

await service.database.query(sql.unsafe`update teams set name = 'Northwind' where id = ${team.id}`)

const MAY: Record<Page['access'], readonly Who[]> = {
  open: ['stranger', 'other team', 'viewer', 'editor', 'owner', 'operator'],
  person: ['other team', 'viewer', 'editor', 'owner', 'operator'],
  viewer: ['viewer', 'editor', 'owner', 'operator'],
  editor: ['editor', 'owner', 'operator'],
  owner: ['owner', 'operator'],
  operator: ['operator'],
}

/** Returns a page's path for this team. Its other objects don't exist, because access is checked first. */
const pathOf = ({ path }: Page): string =>
  path
    .replace(':team', team.id)
    .replace(':place', '0')
    .replace(/:(\w+)/g, (_, name: string) => (name.endsWith('id') ? uuidv7() : 'nothing'))

/** Paths without a frame: sign-in pages, previews and downloads. */
const NO_PAGES = /login|openid|\.csv|\/preview|\/files\//

/** Fails unless a page or an error has the full frame, with the right team. */
function isFramed(t: Test, { html }: Seen, path: string, who: Who): void {
  const isOperators = who === 'operator' && !path.startsWith('/teams/')
  const place = isOperators ? 'Operator' : who === 'other team' ? 'A team' : 'Northwind'
  const parts = ['<nav id="nav"', '<form class="seek"', `aria-label="Team: ${place}"`]
  const missing = parts.filter((part) => !html.includes(part))
  t.strictSame(missing, [], `${path} as ${who}`)
}

const tokens = new Map<Who, string>()
for (const who of Object.keys(people) as Who[]) {
  const { html } = await people[who].get('/account')
  tokens.set(who, /name="csrf" value="([^"]+)"/.exec(html)?.[1] ?? '')
}

/** Requests a page or sends a form. */
const visit = (page: Page, who: Who, form: Record<string, string> = {}): Promise<Seen> =>
  page.method === 'GET'
    ? people[who].get(pathOf(page))
    : people[who].post(pathOf(page), { ...form, csrf: tokens.get(who) ?? '' })

/** The headers of a page that refreshes itself. */
const LIVE = { Accept: 'application/vnd.heliograph.fragment' }
const REFUSED: Partial<Record<Who, number>> = { stranger: 303, 'other team': 404 }

t.test('every page has the access in the table', async (t) => {
  const pages = PAGES.map(({ method, path, access }) => `${method} ${path} is for ${access}`)
  const table = Object.entries(RIGHTS).flatMap(([access, its]) =>
    its.map((page) => `${page} is for ${access}`),
  )
  t.strictSame(pages.sort(), table.sort())
})

t.test('paths match the kind of access', async (t) => {
  for (const { method, path } of PAGES) {
    const access = rightOf({ method, path }) ?? 'open'
    const isOfTeam = ['viewer', 'editor', 'owner'].includes(access)
    t.equal(path.startsWith('/teams/:team'), isOfTeam, `${method} ${path}`)
    t.equal(path.startsWith('/operator'), access === 'operator', `${method} ${path}`)
  }
})

/** One page of each access and method. dispatch.ts compares only these two, and whether the page is a question. */
const ONE_OF_EACH = [
  ...new Map(
    PAGES.filter(({ path }) => path !== '/sign-out').map((page) => [`${page.method} ${page.access}`, page]),
  ).values(),
]

/** The lowest role with access, and the highest without. */
const EDGES: Record<Page['access'], readonly Who[]> = {
  open: ['stranger'],
  person: ['other team', 'stranger'],
  viewer: ['viewer', 'other team'],
  editor: ['editor', 'viewer'],
  owner: ['owner', 'editor'],
  operator: ['operator', 'owner'],
}

for (const page of PAGES) {
  if (page.path === '/sign-out') continue
  const access = rightOf(page) ?? 'operator'
  t.test(`${page.method} ${page.path} is for ${access}`, async (t) => {
    for (const who of ONE_OF_EACH.includes(page) ? (Object.keys(people) as Who[]) : EDGES[access]) {
      const seen = await visit(page, who)
      const { status, location } = seen
      if (who !== 'stranger' && status !== 303 && !NO_PAGES.test(page.path)) isFramed(t, seen, page.path, who)
      if (MAY[access].includes(who)) {
        t.notMatch(location ?? '', /^\/login\?return_to/, who)
        t.ok(status !== 403 && status < 500, `${who}: ${status}`)
      } else {
        const refused = REFUSED[who] ?? (access === 'operator' ? 404 : 403)
        t.equal(status, refused, who)
        if (who === 'stranger') t.match(location, /^\/login/)
        if (page.method === 'GET')
          t.equal((await people[who].get(pathOf(page), LIVE)).status, refused, 'live')
      }
    }
  })
}

const ASKING = PAGES.filter(({ asks }) => asks !== undefined)

t.test("a question has its action's access, and the full frame", async (t) => {
  t.ok(ASKING.length >= 35, `${ASKING.length} questions`)
  for (const page of ASKING) {
    const may = MAY[rightOf(page) ?? 'operator']
    for (const who of EDGES[rightOf(page) ?? 'operator']) {
      const asked = await people[who].get(`${pathOf(page)}/confirm`)
      const about = `${page.path} as ${who}: ${asked.status}`
      const refused = REFUSED[who] ?? (page.access === 'operator' ? 404 : 403)
      // Some questions need the submitted form.
      if (may.includes(who)) t.ok([200, 303].includes(asked.status), about)
      else t.equal(asked.status, refused, about)
      if (who !== 'stranger' && asked.status !== 303) isFramed(t, asked, page.path, who)
    }
  }
})

const digestRow = object({ digest: string().defined() })

/** The tables with a team's objects and the columns of their IDs, by the part of the path that they are under. */
const TABLES: Record<string, [table: string, id: string]> = {
  emails: ['accepted_emails', 'id'],
  broadcasts: ['broadcasts', 'id'],
  topics: ['topics', 'id'],
  templates: ['templates', 'id'],
  keys: ['api_keys', 'id'],
  'integration/tokens': ['sessions', 'id'],
  people: ['memberships', 'user_id'],
  webhooks: ['webhook_endpoints', 'id'],
  whatsapp: ['whatsapp_messages', 'id'],
  'whatsapp-templates': ['whatsapp_templates', 'id'],
  contacts: ['contacts', 'email'],
  'contacts/imports': ['contact_imports', 'id'],
  'background-jobs': ['background_jobs', 'id'],
  domains: ['domains', 'name'],
}

/** Creates an object of each kind for the other team. */
async function fillOther(): Promise<void> {
  const { create, contacts } = await broadcastingOf(service, other)
  await create()
  await contacts(['theirs'])
  await sendEmail(service, other, { attachments: [{ filename: 'a.txt', content: btoa('secret') }] })
  const { id: template_id } = await makeTemplate(service, other.id)
  await sendWhatsapp(service, other, template_id)
  const cli = adminCli({ DATABASE_URL: service.url })
  await cli.json(['webhook', 'add', other.id, '--url', 'https://hooks.example.com/in', '--types', '*'])
  // Both teams have example.com.
  await service.database.query(sql.unsafe`delete from domains where team_id = ${other.id}`)
  await cli.json(['domain', 'add', other.id, 'theirs.example.net'])
  const at = `/teams/${other.id}`
  await people['other team'].post(`${at}/integration/tokens`, {})
  const file = 'email\nimported@example.org\n'
  const started = await people['other team'].upload(`${at}/contacts/import`, 'list.csv', file)
  await people['other team'].post(started.location ?? '', {})
  await people['other team'].post(`${started.location}/start`, {})
}

t.test("another team's objects are not found under one's own team", async (t) => {
  await fillOther()
  const digests = () =>
    Promise.all(
      Object.values(TABLES).map(([table]) =>
        service.database.oneFirst(sql.type(digestRow)`
          select md5(coalesce(string_agg(r::text, ' ' order by r::text), '')) as digest
          from ${sql.identifier([table])} r where team_id = ${other.id}`),
      ),
    )
  const ids = new Map<string, string>()
  for (const [part, [table, id]] of Object.entries(TABLES))
    ids.set(
      part,
      await service.database.oneFirst(sql.type(idRow)`
        select ${sql.identifier([id])}::text as id from ${sql.identifier([table])} where team_id = ${other.id} limit 1`),
    )
  const before = await digests()
  const asked = new Map<string, number>()
  for (const page of PAGES) {
    const [, part = '', param = ''] =
      /^\/teams\/:team\/([a-z/-]+)\/(:id|:email|:name)(\/|$)/.exec(page.path) ?? []
    const id = ids.get(part)
    // A topic's page is a filter of the team's contacts.
    if (!id || (part === 'topics' && page.method === 'GET')) continue
    const path = pathOf({ ...page, path: page.path.replace(param, id) })
    // An address without a contact can also be erased.
    const found = page.path.endsWith('/:email/erase') ? [303] : [400, 404]
    for (const who of ['viewer', 'editor', 'owner', 'operator'] as const) {
      const answers = [page.method === 'GET' ? await people[who].get(path) : await people[who].post(path, {})]
      if (page.method === 'GET' && who === 'owner') answers.push(await people[who].get(path, LIVE))
      const expected = MAY[rightOf(page) ?? 'operator'].includes(who) ? found : [403]
      for (const { status } of answers)
        t.ok(expected.includes(status), `${page.method} ${page.path} as ${who}: ${status}`)
    }
    asked.set(part, (asked.get(part) ?? 0) + 1)
  }
  t.strictSame([...asked.keys()].sort(), Object.keys(TABLES).sort())
  t.strictSame(await digests(), before)
})

/** Actions without anything to do here, such as without a restored copy. */
const NOTHING_TO_DO = ['/operator/queues/restored']

t.test("an unconfirmed form doesn't run the action", async (t) => {
  for (const page of ASKING) {
    const sent = await visit(page, 'operator', { confirmed: '' })
    if (sent.status === 303) t.match(sent.location, /\/confirm($|\?)|\/webhooks\//, page.path)
    else if (NOTHING_TO_DO.includes(page.path)) t.equal(sent.status, 409, page.path)
    else t.ok([400, 404].includes(sent.status), `${page.path}: ${sent.status}`)
  }
})

t.test('members of a suspended team can only read', async (t) => {
  const by = { tx: service.database, now: new Date(), actor: 'cli' }
  await service.database.transaction((tx) => suspendTeam({ ...by, tx }, team.id))
  for (const page of PAGES.filter(({ path }) => path.startsWith('/teams/:team')))
    for (const who of ONE_OF_EACH.includes(page)
      ? (['viewer', 'editor', 'owner'] as const)
      : (['owner'] as const)) {
      const may = page.method === 'GET' && MAY[rightOf(page) ?? 'operator'].includes(who)
      const seen = await visit(page, who)
      t.equal(seen.status !== 403, may, `${page.method} ${page.path} as ${who}: ${seen.status}`)
      if (page.asks) t.equal((await people[who].get(`${pathOf(page)}/confirm`)).status, 403, page.path)
    }
  const topics = `/teams/${team.id}/topics`
  shows(t, await people.owner.post(topics, { name: 'x' }), 'This team is suspended')
  t.equal((await people.operator.post(topics, { name: 'x' })).status, 303, 'an operator may')
  const { html } = await people.owner.get(`/teams/${team.id}/keys`)
  for (const [place, words] of [
    ['audit', 'Audit log'],
    ['background-jobs', 'Background jobs'],
  ])
    t.match(html, new RegExp(`href="/dashboard/teams/${team.id}/${place}">.*${words}</a>`))
  t.match(html, 'class="tag warn">suspended')
  t.notMatch(html, '>active<')
  t.notMatch(html, 'Revoke', 'no button that would be refused')
  t.notMatch((await people.owner.get(`/teams/${team.id}/people`)).html, /Invite/)
  await service.database.transaction((tx) => resumeTeam({ ...by, tx }, team.id))
  t.equal((await people.owner.post(topics, { name: 'y' })).status, 303)
})

t.test('pages of a suspended team have no forms', async (t) => {
  const by = { tx: service.database, now: new Date(), actor: 'cli' }
  const at = (path: string): string => `/teams/${team.id}/${path}`
  const { topic_id, template_id, contacts, create } = await broadcastingOf(service, team)
  await contacts(['ann'])
  const draft = await create()
  const ended = await create()
  await service.database.query(sql.unsafe`
    update broadcasts set state = 'sent', started_at = now(), ended_at = now(), audience = 0, audience_until = now(),
      walked_at = now(), template_version_id = (select version_id from templates where id = ${template_id}),
      link_base = 'https://mail.example.com'
    where id = ${ended}`)
  await sendEmail(service, team)
  const upload = await people.owner.upload(at('contacts/import'), 'list.csv', 'email\nbo@example.org\n')
  const { html } = await people.owner.get(at('people'))
  const [, member = ''] = /href="[^"]*\/people\/([^"]+)"/.exec(html) ?? []
  const pages = [
    ...['emails/all', 'contacts', 'contacts/import', 'suppressions', 'suppressions/import', 'keys', 'people'],
    ...[`people/${member}`, 'topics', `topics/${topic_id}`, 'templates', `templates/${template_id}`],
    ...['broadcasts/new', `broadcasts/${draft}`, `broadcasts/${draft}/edit`, `broadcasts/${ended}/again`],
    ...['integration', 'domains', 'webhooks', 'contacts/ann@example.org'],
  ].map(at)
  pages.push(upload.location ?? '', `${upload.location}/check`)
  const formsOn = async (who: Who, page: string) =>
    (await people[who].get(page)).html.match(/<form [^>]*action="\/dashboard\/teams\/[^"]*"/g) ?? []
  const changing = async (who: Who, page: string) =>
    (await formsOn(who, page)).filter((form) => form.includes('method="post"'))
  for (const page of pages) t.not((await changing('owner', page)).length, 0, `${page} has a form`)
  await service.database.transaction((tx) => suspendTeam({ ...by, tx }, team.id))
  for (const page of pages) {
    for (const who of ['viewer', 'editor', 'owner'] as const)
      t.strictSame(await changing(who, page), [], `${page} as ${who}`)
    t.not((await changing('operator', page)).length, 0, `${page} as operator`)
  }
  t.not((await formsOn('owner', at('contacts'))).length, 0, 'a filter changes nothing')
  await signedIn(service, { team: team.id, role: 'owner', email: people.owner.email })
  const own = await people.owner.get(`/account?team=${team.id}`)
  shows(t, own, /This team is suspended.*End all other sessions/)
  const typed = await people.owner.post(at(`topics/${topic_id}/rename`), { name: 'Typed before' })
  t.equal(typed.status, 403)
  shows(t, typed, 'This team is suspended. It is read-only')
  t.match(typed.html, /name="name"[^>]* value="Typed before"/)
  t.notMatch(typed.html, 'Delete topic')
  await service.database.transaction((tx) => resumeTeam({ ...by, tx }, team.id))
})
