// Test teams: the same responses as a live team, a banner on their pages, and no use of other teams' mail.
import { randomUUID } from 'node:crypto'
import { ROUTES } from '../../api/app.ts'
import { PAGES } from '../../api/dashboard/routes.ts'
import { applyTemplateUpdates } from '../../db/messages/whatsapp/templates.sql.ts'
import { adminCli } from '../support/admin.ts'
import { broadcastingOf } from '../support/broadcasting.ts'
import { shows, signedIn, textOf, visitor } from '../support/dashboard.ts'
import { EMPTY } from '../support/empty.ts'
import { jobsOf } from '../support/rows.ts'
import { anEmail, makeKey, makeSession, makeTeam, type Reply, startService } from '../support/service.ts'
import t from '../support/tap.ts'
import { aMessage, aTemplate, makeTemplate } from '../support/whatsapp.ts'
import { startWorker } from '../support/worker.ts'

const PUBLIC_URL = 'https://mail.example.com'
const service = await startService(t, { publicUrl: PUBLIC_URL, dashboard: { from: 'us@example.com' } })
const cli = adminCli({ DATABASE_URL: service.url })

type Ask = {
  method: string
  /** `{made}` is the ID that the last call to the path before it has created. */
  path: string
  body?: unknown
  raw?: string
  as?: 'nobody' | 'session' | 'reader' | 'narrow'
  headers?: Record<string, string>
}
type World = { template: string; topic: string; whatsapp: string; pending: string }

const post = (path: string, body: unknown, more: Partial<Ask> = {}): Ask => ({
  method: 'POST',
  path,
  body,
  ...more,
})

/** Sends of all kinds, to each recipient that a test team simulates. */
const emailAsks = ({ template }: World): Ask[] => [
  ...['someone', 'delivered', 'bounced', 'complained', 'deferred', 'refused', 'opened', 'clicked'].flatMap(
    (who) =>
      [
        { to: [`${who}@example.org`] },
        ...Array(2).fill({ to: [`${who}+tag@example.org`], idempotency_key: who }),
      ].map((changes) => post('/v1/emails', anEmail(changes))),
  ),
  ...[
    ...[{ from: 'hello@example.net' }, { to: [] }, { unknown: 1 }],
    { attachments: [{ filename: 'a.txt', content: btoa('x'.repeat(200_000)) }] },
    ...[{ name: 'Ana' }, {}].map((variables) => ({ html: undefined, template_id: template, variables })),
  ].map((changes) => post('/v1/emails', anEmail(changes))),
  ...(['nobody', 'reader', 'narrow', 'session'] as const).map((as) => post('/v1/emails', anEmail(), { as })),
  ...[
    [anEmail({ to: ['bounced@example.org'] }), anEmail({ to: [] }), anEmail({ from: 'a@example.net' })],
    [anEmail({ idempotency_key: 'b' }), anEmail({ idempotency_key: 'b' })],
    Array.from({ length: 100 }, () => anEmail()),
  ].map((emails) => post('/v1/emails/batch', { emails })),
]

const contactAsks = ({ topic }: World): Ask[] => [
  ...['ana', 'bounced'].flatMap((who) => [
    post('/v1/contacts', { email: `${who}@example.org`, properties: { name: who }, topic_ids: [topic] }),
    post('/v1/contacts', { email: `${who}@example.org` }),
    { method: 'GET', path: `/v1/contacts/${who}@example.org` },
    { method: 'PATCH', path: `/v1/contacts/${who}@example.org`, body: { properties: { plan: 'x' } } },
    post(`/v1/contacts/${who}@example.org/unsubscribe`, {}),
    post(`/v1/contacts/${who}@example.org/resubscribe`, {}),
  ]),
  { method: 'GET', path: '/v1/contacts?limit=1' },
  post('/v1/contacts/bulk', { contacts: [{ email: 'bulk@example.org' }, { email: 'no' }] }),
  { method: 'DELETE', path: '/v1/contacts/bounced@example.org' },
  post('/v1/marketing/unsubscribe', { email: 'ana@example.org' }),
]

const whatsappAsks = ({ whatsapp, pending }: World): Ask[] => [
  ...Array.from({ length: 8 }, (_, digit) => `+1555555010${digit}`).flatMap((to) =>
    Array(2).fill(post('/v1/whatsapp/messages', aMessage(whatsapp, { to: [to], idempotency_key: `w${to}` }))),
  ),
  ...[['no'], ['+15555550101', '+15555550102']].map((to) =>
    post('/v1/whatsapp/messages', aMessage(whatsapp, { to })),
  ),
  ...[pending, 'no'].map((id) => post('/v1/whatsapp/messages', aMessage(id))),
  post('/v1/whatsapp/messages', aMessage(whatsapp), { as: 'reader' }),
  post('/v1/whatsapp/messages/batch', { messages: [aMessage('no'), aMessage(whatsapp)] }),
]

const broadcastAsks = ({ template, topic }: World): Ask[] => {
  const draft = (changes: object = {}) => ({
    ...{ name: 'News', template_id: template, from: 'Acme <news@example.com>', subject: 'News' },
    ...{ topic_ids: [topic], ...changes },
  })
  const at = (verb = ''): string => `/v1/broadcasts/{made}${verb}`
  return [
    ...[{ from: 'a@example.net' }, { template_id: 'no' }, {}].map((changes) =>
      post('/v1/broadcasts', draft(changes)),
    ),
    { method: 'GET', path: '/v1/broadcasts' },
    { method: 'GET', path: at() },
    { method: 'PATCH', path: at(), body: { subject: 'Other' } },
    ...['/test', '/pause', '/resume', '/cancel', '/send', '/send', '/pause', '/resume', '/cancel'].map(
      (verb) => post(at(verb), verb === '/test' ? { to: ['ana@example.org'] } : {}),
    ),
    { method: 'DELETE', path: at() },
  ]
}

const HOUR = 3_600_000
const ahead = (ms: number): string => new Date(Date.now() + ms).toISOString()
const [IN_AN_HOUR, IN_TWO_HOURS] = [ahead(HOUR), ahead(2 * HOUR)]

/** Scheduled messages: sent, rescheduled and cancelled, with and without the right to do so. */
const scheduledAsks = ({ whatsapp }: World): Ask[] =>
  (
    [
      ['/v1/emails', anEmail({ to: ['bounced@example.org'] })],
      ['/v1/whatsapp/messages', aMessage(whatsapp, { to: ['+15555550102'] })],
    ] as const
  ).flatMap(([path, body]) => {
    const move = (scheduled_at: string, as?: Ask['as']): Ask => ({
      ...{ method: 'PATCH', path: `${path}/{made}`, body: { scheduled_at } },
      ...(as && { as }),
    })
    const cancel = post(`${path}/{made}/cancel`, undefined)
    const timed = post(path, { ...body, scheduled_at: IN_AN_HOUR, expires_in: 600, idempotency_key: 'timed' })
    return [
      ...[timed, timed, move(IN_TWO_HOURS), move(IN_TWO_HOURS, 'narrow'), move(IN_TWO_HOURS, 'session')],
      ...[{ ...cancel, as: 'reader' as const }, cancel, cancel, move(IN_AN_HOUR), timed],
      ...[post(path, { ...body, expires_in: 600 }), cancel, move(IN_AN_HOUR)],
    ]
  })

const otherAsks = (): Ask[] => [
  { method: 'POST', path: '/v1/attachments?filename=a.txt', raw: 'hello' },
  { method: 'GET', path: '/v1/plans' },
]

const GROUPS = [emailAsks, contactAsks, whatsappAsks, scheduledAsks, broadcastAsks, otherAsks]

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g
const HEADERS = ['content-type', 'retry-after', 'allow', 'ratelimit-policy', 'location']

/**
 * Returns a response without differences between teams and times: IDs are numbered, times and tokens
 * replaced.
 */
function plain(reply: Reply, ids: Map<string, string>) {
  const known = (id: string): string => {
    if (!ids.has(id)) ids.set(id, `#${ids.size}`)
    return ids.get(id) ?? ''
  }
  const text = JSON.stringify(reply.body)
    .replace(/"([a-z_]*token|cursor|next)":"[^"]*"/g, '"$1":"…"')
    .replace(UUID, known)
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'time')
  const headers = Object.fromEntries(
    HEADERS.map((name) => [name, reply.headers.get(name)?.replace(UUID, known)]),
  )
  return { status: reply.status, headers, body: JSON.parse(text) as unknown }
}

/** Deliveries are paused, because their progress differs between two teams at any time. Other jobs run. */
await startWorker(t, service, {
  pauses: async (job) => job.startsWith('deliver-') || job === 'expand-broadcast',
})

/** Makes every call as a team. @returns the calls with their responses */
async function answersOf(test: boolean, limits: { email_limit?: number } = {}) {
  const team = await makeTeam(service, { test, ...limits })
  const news = await broadcastingOf(service, team)
  const keys = {
    nobody: undefined,
    session: await makeSession(service, team.id),
    reader: await makeKey(service, team.id, { scopes: ['contacts:read'] }),
    narrow: await makeKey(service, team.id, { domain: 'example.net' }),
  }
  const made = new Map<string, string>()
  const { id: pending } = await makeTemplate(service, team.id)
  await cli.json(['whatsapp-template', 'status', team.id, pending, 'paused'])
  const world: World = {
    template: news.template_id,
    topic: news.topic_id,
    whatsapp: (await makeTemplate(service, team.id, aTemplate({}, { name: 'order_ready' }))).id,
    pending,
  }
  const ids = new Map(
    [world.template, world.topic, world.whatsapp, pending, team.id].map((id, at) => [id, `@${at}`]),
  )
  const answers: ({ asked: string } & ReturnType<typeof plain>)[] = []
  for (const group of GROUPS) {
    for (const { method, path: asks, as, ...rest } of group(world)) {
      const path = asks.replace(/(.*)\/\{made\}/, (_, list) => `${list}/${made.get(list) ?? 'none'}`)
      const key = as === undefined ? team.key : keys[as]
      const reply = await service.call(method, path, { ...rest, ...(key === undefined ? {} : { key }) })
      const id = reply.body?.id ?? reply.body?.data?.[0]?.id
      if (reply.status === 201 && typeof id === 'string') made.set(path, id)
      const asked = `${method} ${path.replace(UUID, '…')} ${JSON.stringify(rest.body)?.replace(UUID, '…').slice(0, 200)}`
      answers.push({ asked, ...plain(reply, ids) })
    }
  }
  return answers
}

/** Returns the routes of the API without a response here. */
const unasked = (answers: readonly { asked: string }[]): string[] =>
  ROUTES.filter(({ path }) => path.startsWith('/v1/'))
    .map(({ method, path }) => `${method} ${path}`)
    .filter((route) => {
      const pattern = new RegExp(`^${route.replace(/:\w+/g, '[^/ ?]+')}[ ?]`)
      return !answers.some(({ asked }) => pattern.test(asked))
    })

for (const [what, limits] of [
  ['with room', {}],
  ['at its quota', { email_limit: 12 }],
] as const)
  t.test(`live and test teams ${what} get the same responses`, async (t) => {
    const [live, test] = [await answersOf(false, limits), await answersOf(true, limits)]
    t.strictSame(unasked(live), [], 'every call of the API is among them')
    const statuses = new Set(live.map(({ status }) => status))
    for (const status of [200, 201, 400, 401, 403, 404, 409]) t.ok(statuses.has(status), String(status))
    t.equal(statuses.has(402), 'email_limit' in limits)
    for (const [at, answer] of live.entries())
      t.strictSame(test[at], answer, JSON.stringify(answer).slice(0, 160))
  })

t.test('the CLI creates test teams with ready domains and templates', async (t) => {
  const live = await makeTeam(service, { domain: 'taken.test' })
  const made = await cli.json(['team', 'create', '--name', 'Staging', '--test'])
  t.match(made, { name: 'Staging', plan: 'free', test: true })
  t.match(await cli.json(['team', 'show', made.id]), { test: true })
  t.notOk('test' in (await cli.json(['team', 'show', live.id])))
  const teams: { id: string; test?: true }[] = await cli.json(['team', 'list'])
  t.equal(teams.find(({ id }) => id === made.id)?.test, true)
  t.notOk(teams.find(({ id }) => id === live.id)?.test)
  t.match(await cli.json(['domain', 'add', made.id, 'taken.test']), {
    name: 'taken.test',
    status: 'verified',
  })
  t.match(await cli.json(['domain', 'add', live.id, 'new.test']), { status: 'pending' })
  const create = ['whatsapp-template', 'create', made.id, '--file', '-']
  const file = { input: JSON.stringify(aTemplate({}, { status: 'REJECTED' })) }
  const template = await cli.json(create, file)
  t.equal(template.status, 'approved')
  t.match(await cli.json(['whatsapp-template', 'sync', made.id]), {
    templates: [{ id: template.id }],
    missing: EMPTY,
  })
  const about = {
    ...{ name: template.name, language: template.language, account_id: null, number: null },
    occurred_at: new Date(),
  }
  const news = await applyTemplateUpdates(service.database, [{ ...about, status: 'disabled' }], new Date())
  t.same(news, [], 'the provider’s news of that name are not about it')
  const status = ['whatsapp-template', 'status', made.id, template.id, 'paused']
  t.match(await cli.json(status), { status: 'paused' })
})

const BANNER = 'Test team: nothing is delivered'

t.test('only pages of test teams have the banner', async (t) => {
  const [test, live] = [await makeTeam(service, { test: true }), await makeTeam(service)]
  const operator = await signedIn(service, { operator: true, email: 'op@example.com' })
  const viewer = await signedIn(service, { team: test.id, role: 'viewer' })
  const sent = new Map<string, string>()
  for (const { id, key } of [test, live])
    sent.set(id, (await service.call('POST', '/v1/emails', { key, body: anEmail() })).body.id)
  // Except parts of pages and downloads.
  const pages = PAGES.filter(
    ({ method, path }) =>
      method === 'GET' && path.startsWith('/teams/:team') && !/\.csv|\/preview|\/files\//.test(path),
  )
  t.ok(pages.length > 40, `${pages.length} pages`)
  for (const { path, access } of pages) {
    const of = ({ id }: { id: string }) =>
      path
        .replace(':team', id)
        .replace('/emails/:id', `/emails/${sent.get(id)}`)
        .replace(/:\w+/g, (name) => (name.endsWith('id') ? randomUUID() : 'nothing'))
    const page = await (access === 'viewer' ? viewer : operator).get(of(test))
    // The page of an unknown topic redirects to the list.
    if (page.status !== 303) t.ok(textOf(page.html).includes(BANNER), path)
    if (access === 'viewer') t.notOk((await operator.get(of(live))).html.includes(BANNER), path)
  }
})

t.test('an operator can create a test team on the page', async (t) => {
  const operator = await signedIn(service, { operator: true, email: 'op2@example.com' })
  const before = await operator.get('/operator/teams')
  shows(t, before, /Test team/)
  const made = await operator.post('/operator/teams', { name: 'By hand', plan: 'free', test: 'yes' })
  const page = await operator.get(made.location?.replace('/dashboard', '') ?? '')
  shows(t, page, BANNER)
  const other = await operator.post('/operator/teams', { name: 'Live by hand', plan: 'free' })
  const list = textOf((await operator.get('/operator/teams')).html)
  t.match(list, /By hand.{0,60}Free, test team/)
  t.match(list, /Live by hand Free(?!, test)/)
  t.notOk((await operator.get(other.location?.replace('/dashboard', '') ?? '')).html.includes(BANNER))
})

t.test('our own mail is never sent by a test team', async (t) => {
  const own = await startService(t, { publicUrl: PUBLIC_URL, dashboard: { from: 'us@example.com' } })
  const test = await makeTeam(own, { test: true })
  const live = await makeTeam(own)
  await signedIn(own, { team: test.id, role: 'owner', email: 'owner@example.org' })
  await visitor(own).post('/login', { email: 'owner@example.org', csrf: '' })
  const queues = async (id: string) => (await jobsOf(own, id)).map(({ name }) => name)
  t.same(await queues(live.id), ['deliver-email'])
  t.same(await queues(test.id), [])
})
