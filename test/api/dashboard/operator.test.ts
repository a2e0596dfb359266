/** The operator's pages of teams, plans and parked reports, and the audit log. */
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { insertAuditEntry } from '../../../db/accounts/audit/audit.sql.ts'
import { loadCatalog } from '../../../db/accounts/plans/catalog.ts'
import { showTeam } from '../../../db/accounts/teams/view.ts'
import { endReports, insertReports } from '../../../db/delivery/reports/reports.sql.ts'
import { after, formsTo, mainActs, shows, signedIn, textOf } from '../../support/dashboard.ts'
import { formTo } from '../../support/forms.ts'
import { hold } from '../../support/held.ts'
import { lockWaits } from '../../support/rows.ts'
import { anEmail, makeTeam, startService } from '../../support/service.ts'
import t from '../../support/tap.ts'
import { until } from '../../support/worker.ts'

const service = await startService(t)
const { database } = service
const operator = await signedIn(service, { operator: true, email: 'operator@example.com' })

/** Stores a report. @returns its ID. */
async function receive(body = 'From: nobody'): Promise<string> {
  const id = uuidv7()
  const now = new Date()
  await insertReports(database, [
    { id, provider: 'smtp', event_key: id, body: Buffer.from(body), received_at: now, retry_until: now },
  ])
  return id
}

const parkIt = async (id: string, reason: string): Promise<void> =>
  endReports(database, [{ id, state: 'parked', reason }])

/** Stores a report and parks it. @returns its ID. */
async function park(reason: string): Promise<string> {
  const id = await receive()
  await parkIt(id, reason)
  return id
}

t.test('creates a team, and changes its plan and limits', async (t) => {
  const made = await operator.post('/operator/teams', { name: 'Wile & Sons', plan: 'free' })
  const id = /^\/teams\/([^/]+)$/.exec(made.location ?? '')?.[1] ?? ''
  shows(t, await operator.get('/operator/teams?name=wile'), /Wile & Sons Free /)
  const page = await operator.get(`/operator/teams/${id}`)
  shows(t, page, /← Teams Wile & Sons Plan Free\. This period: /)
  shows(t, page, /Hard bounces – limit 5\.0\s% Complaints – limit 0\.10\s% Suppressed 0/)
  t.match(page.html, '>Pro<')
  t.notMatch((await operator.get('/operator/teams?name=nobody')).html, /Wile/)
  await operator.post(`/operator/teams/${id}/plan`, { plan: 'pro', email_limit: '7' })
  t.match(await showTeam(database, id), { plan: 'pro', limits: { emails: 7 } })
  await operator.post(`/operator/teams/${id}/plan`, { plan: 'pro', email_limit: 'plan' })
  t.match(await showTeam(database, id), { limits: { emails: 50_000 } })
  const refused = await operator.post(`/operator/teams/${id}/plan`, { plan: 'pro', email_limit: 'many' })
  t.equal(refused.status, 400)
  shows(t, refused, /Emails per period must be a number/)
})

t.test("a stale form doesn't undo a limit of another operator", async (t) => {
  const other = await makeTeam(service, { plan: 'free', domain: 'two-operators.test' })
  const page = `/operator/teams/${other.id}`
  const form = formTo((await operator.get(page)).html, `${page}/plan`)
  await operator.press(page, `${page}/plan`, { plan: 'pro', email_limit: '70000' })
  t.equal((await operator.post(`${page}/plan`, { ...form, contact_limit: '300' })).status, 303)
  const shown = async () => database.transaction((tx) => showTeam(tx, other.id))
  t.match(await shown(), { plan: 'pro', limits: { emails: 70_000, contacts: 300 } })
  await operator.press(page, `${page}/plan`, { plan: 'free' })
  t.match(await shown(), { plan: 'free', limits: { emails: 70_000 } }, 'what stands there goes along')
  await operator.press(page, `${page}/plan`, { email_limit: '' })
  t.match(await shown(), { plan: 'free', limits: { emails: 5_000 } })
})

t.test('accepts limits with thousands separators', async (t) => {
  const { id } = await makeTeam(service)
  const plan = `/operator/teams/${id}/plan`
  const { html } = await operator.get(`/operator/teams/${id}`)
  const shown = [...html.matchAll(/name="\w+_limit"[^>]* placeholder="([^"]+)"/g)]
  t.not(shown.length, 0)
  for (const typed of [...shown.map(([, words = '']) => words), '20,000', '20 000', '1\u202f234\u00a0567']) {
    t.match(await operator.post(plan, { plan: 'pro', email_limit: typed }), { status: 303 }, typed)
    t.match(await showTeam(database, id), { limits: { emails: Number(typed.replace(/\D/g, '')) } })
  }
  for (const odd of ['20,00', '2000,000', '1,2,3'])
    t.match(await operator.post(plan, { plan: 'pro', email_limit: odd }), { status: 400 }, odd)
})

t.test("a suspended team's key returns 401 until it is resumed", async (t) => {
  const team = await makeTeam(service)
  const send = async () =>
    (await service.call('POST', '/v1/emails', { key: team.key, body: anEmail() })).status
  t.equal(await send(), 201)
  await operator.post(`/operator/teams/${team.id}/suspend`)
  t.equal(await send(), 401)
  shows(t, await operator.get(`/operator/teams/${team.id}`), /its credentials are rejected/)
  const viewer = await signedIn(service, { team: team.id, role: 'viewer' })
  const overview = await viewer.get(`/teams/${team.id}`)
  shows(t, overview, /This team is suspended\. .* Nothing goes out, because the team is suspended/)
  t.notMatch(overview.html, /Everything is going out/)
  shows(t, await viewer.get(`/teams/${team.id}/contacts`), 'This team is suspended.')
  await operator.post(`/operator/teams/${team.id}/resume`)
  t.equal(await send(), 201)
})

t.test('queued emails wait for a suspended team, scheduled ones for their time', async (t) => {
  const team = await makeTeam(service)
  const pathOf = async (body: object) =>
    `/teams/${team.id}/emails/${(await service.call('POST', '/v1/emails', { key: team.key, body })).body.id}`
  const queued = await pathOf(anEmail())
  const scheduled = await pathOf(anEmail({ scheduled_at: new Date(Date.now() + 86_400_000).toISOString() }))
  await operator.post(`/operator/teams/${team.id}/suspend`)
  // A worker would end the job, because the team is suspended.
  await service.database.query(sql.unsafe`delete from pgboss.job where data ->> 'team_id' = ${team.id}`)
  const viewer = await signedIn(service, { team: team.id, role: 'viewer' })
  for (const person of [viewer, operator]) {
    const page = await person.get(queued)
    shows(t, page, /Why it waits Nothing goes out, because the team is suspended/)
    t.notMatch(textOf(page.html), /requeued automatically|a worker/)
    shows(t, await person.get(scheduled), /Why it waits Scheduled for/)
  }
  const again = await operator.press(queued, `${queued}/requeue`)
  shows(t, await after(operator, again), 'Delivery is paused (team A team). The next attempt is made when')
  await operator.post(`/operator/teams/${team.id}/resume`)
  t.notMatch(textOf((await viewer.get(queued)).html), 'suspended')
})

t.test('plans show their teams and limits of first tiers', async (t) => {
  const own = await makeTeam(service, { plan: 'enterprise', contact_limit: 7 })
  const { id } = await makeTeam(service, { plan: 'enterprise' })
  const pro = await makeTeam(service, { plan: 'pro' })
  t.match(await showTeam(database, pro.id), { limits: { emails: 50_000, contacts: 5_000 } })
  const { html } = await operator.get('/operator/plans')
  const rows = (html.match(/<tr[\s>][\s\S]*?<\/tr>/g) ?? []).map(textOf)
  t.ok(
    rows.some((row) =>
      /^Pro paid, from 20\.00 a month \d+ .*50,000 first tier 5,000 first tier 10,000 25 10 50 GB$/.test(row),
    ),
    rows.join('\n'),
  )
  t.ok(
    rows.some((row) =>
      /^Enterprise custom 2 2 with own limits unlimited unlimited unlimited unlimited 10 unlimited$/.test(
        row,
      ),
    ),
    rows.join('\n'),
  )
  t.ok(
    rows.some((row) => /^Marketing only prices, from \d+\.\d\d a month( –){7}$/.test(row)),
    rows.join('\n'),
  )
  t.match(html, 'href="/dashboard/operator/teams?plan&#x3D;enterprise"')
  const listed = (await operator.get('/operator/teams?plan=enterprise&sort=newest')).html
  for (const one of [own.id, id]) t.match(listed, `/operator/teams/${one}"`)
  t.notMatch(listed, `/operator/teams/${pro.id}"`)
})

t.test('a suspended team has a red label, and sorting has one', async (t) => {
  const team = await makeTeam(service)
  await operator.post(`/operator/teams/${team.id}/suspend`)
  const { html } = await operator.get('/operator/teams?sort=newest')
  t.match(
    html,
    new RegExp(`href="/dashboard/operator/teams/${team.id}"><span class="tag bad">[^<]*, suspended<`),
  )
  shows(t, { html }, /Sort: worst bounces complaints newest/)
  t.match(html, /sort&#x3D;newest" aria-current="true">newest/)
  t.notMatch((await operator.get('/operator/teams')).html, 'aria-current="true">newest')
})

t.test('the catalog is replaced completely or not at all', async (t) => {
  const { html } = await operator.get('/operator/plans')
  const catalog = /<textarea[^>]*>([^<]*)<\/textarea>/.exec(html)?.[1]?.replaceAll('&quot;', '"') ?? ''
  const { plans } = JSON.parse(
    catalog.replaceAll('&#x27;', "'").replaceAll('&amp;', '&').replaceAll('&#x3D;', '='),
  )
  const same = JSON.stringify({ plans })
  shows(t, await operator.ask('/operator/plans', { catalog: same }), 'Nothing changes.')
  const loaded = await operator.post('/operator/plans', { catalog: same })
  t.equal(loaded.status, 303)
  const broken = await operator.post('/operator/plans', { catalog: '{"plans": [' })
  t.equal(broken.status, 400)
  shows(t, broken, /must be valid JSON/)
  const lacking = await operator.post('/operator/plans', { catalog: '{"plans": []}' })
  t.equal(lacking.status, 400)
  shows(t, lacking, /lacks the plan \w+, which teams use \(\d+\)\. Add it, or move those teams first\./)
})

t.test('rejects a catalog based on a stale one', async (t) => {
  const path = '/operator/plans'
  const form = formTo((await operator.get(path)).html, path)
  const [text = ''] = form.catalog ?? []
  const dearer = JSON.parse(text)
  dearer.plans[0].blurb.en = 'Dearer'
  t.equal((await operator.press(path, path, { catalog: JSON.stringify(dearer) })).status, 303)
  const late = await operator.post(path, { ...form, confirmed: 'yes' })
  t.equal(late.status, 409)
  shows(t, late, /Someone else has replaced the catalog since this page was opened\./)
  t.match(formTo((await operator.get(path)).html, path).catalog, [/Dearer/])
  const fresh = formTo((await operator.get(path)).html, path)
  const by = { now: new Date(), actor: 'cli' }
  const commit = await hold(t, database, (tx) => loadCatalog({ ...by, tx }, JSON.parse(text)))
  const pressed = operator.post(path, { ...fresh, confirmed: 'yes' })
  await until('the press waits for the one before', async () => (await lockWaits(service)) > 0)
  await commit()
  t.equal((await pressed).status, 409, 'nor one that is being replaced')
})

t.test('lists parked reports by reason, replays and drops them', async (t) => {
  const others = [await park('unreadable'), await park('unreadable')]
  const one = await park('no message of ours <script>')
  const waiting = await receive()
  const list = await operator.get('/operator/reports')
  shows(t, list, /Unreadable This version .* 2 Replay 2 reports/)
  t.match(
    list.html,
    /Replay 2 reports[\s\S]*<h2>Reports<\/h2>[\s\S]*Reason contains/,
    'the filter is at its list',
  )
  t.match(list.html, /href="[^"]*reports\?reason&#x3D;unreadable">Unreadable/)
  const lost = await park('no such message')
  const sentence = 'No message matches this report'
  for (const reason of [sentence, 'no such message']) {
    const found = await operator.get(`/operator/reports?${new URLSearchParams({ reason })}`)
    shows(
      t,
      found,
      new RegExp(
        `restore the message from a backup\\. Replay 1 report Drop 1 report .*SMTP relay 12 bytes ${sentence}`,
      ),
    )
    t.strictSame(mainActs(found), [], 'a replay changes nothing')
  }
  const lostPage = await operator.get(`/operator/reports/${lost}`)
  shows(t, lostPage, `${sentence}. The message was deleted`)
  t.strictSame(mainActs(lostPage), [])
  shows(t, lostPage, /backup\. Replay report Drop report/)
  t.strictSame(mainActs(await operator.get('/operator/reports')), [], 'it would not help with each of them')
  const foreign = await park('it has no signed reference to one of our emails')
  shows(t, await operator.get('/operator/reports?reason=no+s'), /⋯ Replay all 2 reports Drop all 2 reports/)
  await operator.post('/operator/reports/drop', { id: foreign })
  const former = await park('there is no such message')
  shows(t, await operator.get(`/operator/reports/${former}`), `${sentence}. The message was deleted`)
  await operator.post('/operator/reports/drop', { id: former })
  t.strictSame(mainActs(await operator.get(`/operator/reports/${one}`)), ['Replay report'])
  await operator.post('/operator/reports/drop', { id: lost })
  t.notMatch(list.html, /<script>/)
  t.match(list.html, `href="/dashboard/operator/reports/${one}"`)
  shows(t, await operator.get(`/operator/reports/${one}`), /From: nobody/)
  t.equal((await operator.post('/operator/reports/drop', { reason: 'unreadable' })).status, 400)
  const [counted = {}] = formsTo(
    await operator.get('/operator/reports?reason=unreadable'),
    '/operator/reports/drop',
  )
  const [filtered, drop] = ['/operator/reports?reason=ours', '/operator/reports/drop?reason=ours']
  const single = await operator.get(filtered)
  shows(t, single, /Replay 1 report ⋯ Drop 1 report /)
  t.match(single.html, `action="/dashboard${drop.replace('=', '&#x3D;')}"`)
  const asked = await operator.ask(drop, formTo(single.html, '/operator/reports/drop'))
  t.match(asked.html, `href="/dashboard${filtered.replace('=', '&#x3D;')}">Go back<`, 'to what was filtered')
  const later = await park('unreadable')
  await parkIt(waiting, 'unreadable')
  await operator.post('/operator/reports/drop', counted)
  t.equal((await operator.get(`/operator/reports/${later}`)).status, 200, 'it came after the list was shown')
  t.equal((await operator.get(`/operator/reports/${waiting}`)).status, 200, 'it was parked after that')
  for (const id of others) t.equal((await operator.get(`/operator/reports/${id}`)).status, 404)
  await operator.post('/operator/reports/replay', { id: one })
  shows(t, await operator.get(`/operator/reports/${one}`), /Report from SMTP relay pending/)
})

t.test('audits actions of operators', async (t) => {
  const page = await operator.get('/operator/audit')
  for (const deed of [
    'Created the team',
    'Changed the limits',
    'Suspended the team',
    'Loaded the plans',
    'Dropped delivery reports',
    'Read a delivery report',
  ])
    shows(t, page, new RegExp(`${deed} operator@example.com`))
  const [kept, dropped] = [await park('unreadable'), await park('unreadable')]
  for (const id of [kept, dropped]) await operator.get(`/operator/reports/${id}`)
  await operator.post('/operator/reports/drop', { id: dropped })
  const read = await operator.get('/operator/audit?action=read+a+delivery+report')
  shows(
    t,
    read,
    new RegExp(`operator@example.com ${dropped} – .*operator@example.com Report from SMTP relay –`),
  )
  t.match(read.html, `href="/dashboard/operator/reports/${kept}">Report from SMTP relay<`)
  t.notMatch(read.html, `reports/${dropped}`)
  const none = await operator.get(`/operator/audit?team=${uuidv7()}`)
  t.notMatch(textOf(none.html.replaceAll(/<option[^<]*<\/option>/g, '')), /Created the team/)
  const made = await operator.post('/operator/teams', { name: 'Audited bakery', plan: 'pro' })
  const id = made.location?.split('/').at(-1) ?? ''
  const template = { name: 'Bread', html: '<p>Hi</p>', text: '' }
  const path = (await operator.post(`/teams/${id}/templates`, template)).location ?? ''
  await operator.post(`${path}/rename`, { name: 'Rolls' })
  const found = await operator.get('/operator/audit?team=audited%20BAK')
  shows(t, found, /Renamed a template \S+ Rolls Audited bakery .*Created a template \S+ Bread Audited bakery/)
  t.match(found.html, `dashboard${path}"`, 'a name leads to its page')
  t.notMatch(found.html, /team\.suspend/, 'of other teams')
  shows(t, await operator.get('/operator/audit?team=nobody-has-this'), 'No entry matches.')
})

t.test("days of a filter are in the reader's time zone", async (t) => {
  const team = await makeTeam(service, { domain: 'zones.test' })
  const owner = await signedIn(service, { team: team.id, role: 'owner' })
  const at = new Date('2026-01-31T12:30:00Z')
  const entry = { team_id: team.id, actor: 'cli', action: 'topic.create', subject: 'Far east', detail: '' }
  await insertAuditEntry(database, { ...entry, id: uuidv7({ msecs: at.getTime() }) }, at)
  const february = async () => (await owner.get(`/teams/${team.id}/audit?from=2026-02-01`)).html
  t.notMatch(await february(), 'Far east')
  t.match(await february(), '(UTC)')
  owner.cookies.set('heliograph-zone', 'Pacific/Auckland')
  t.match(await february(), 'Far east')
  t.notMatch(await february(), '(UTC)')
  t.notMatch((await owner.get(`/teams/${team.id}/audit?to=2026-01-31`)).html, 'Far east')
})

t.test("shows a team's attachment storage and its limit", async (t) => {
  const stored = await makeTeam(service, { domain: 'stored.test' })
  await service.database.query(sql.unsafe`
    update allowances set storage_used = 1500000 where team_id = ${stored.id}`)
  await service.database.query(sql.unsafe`
    update subscriptions set storage_gb = 2 where team_id = ${stored.id}`)
  shows(t, await operator.get(`/operator/teams/${stored.id}`), /Attachments 1\.5 MB of 2 GB/)
})
