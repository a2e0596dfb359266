/** Questions whose object has changed since, such as after Back in the browser. */
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { updateTemplate } from '../../../db/content/templates/save.ts'
import { versionsOfTemplate } from '../../../db/content/templates/templates.sql.ts'
import { endReports, insertReports } from '../../../db/delivery/reports/reports.sql.ts'
import { openConsumer } from '../../../db/queue/boss.ts'
import type { End } from '../../../db/queue/jobs.ts'
import { formsTo, shows, signedIn, textOf, type Visitor } from '../../support/dashboard.ts'
import { formTo } from '../../support/forms.ts'
import { byCli, makeTeam, world } from '../../support/service.ts'
import t, { type Test } from '../../support/tap.ts'

/** TXT records by name. */
const published = new Map<string, string[]>()
const { service, database, team } = await world(t, {
  dashboard: { lookupTxt: async (name) => published.get(name) ?? [] },
})
const owner = await signedIn(service, { team: team.id, role: 'owner' })
const operator = await signedIn(service, { operator: true })
const at = (path: string): string => `/teams/${team.id}/${path}`

type Form = Record<string, string | string[]>

/**
 * Opens the question of a form and submits the form. Fails unless the question then has nothing to confirm.
 * @param back the page that its link leads to.
 */
async function ends(t: Test, who: Visitor, path: string, form: Form = {}, back = ''): Promise<void> {
  const sent = await who.post(path, { ...form, confirmed: '' })
  t.match(sent, { status: 303, location: /\/confirm(\?|$)/ }, path)
  const asked = await who.get(sent.location ?? '')
  t.match(asked.html, 'id="confirm"', `${path}: asks`)
  const done = await who.post(path, { ...form, ...formTo(asked.html, path.split('?')[0] ?? '') })
  t.equal(done.status, 303, `${path}: is done`)
  const over = await who.get(sent.location ?? '')
  t.equal(over.status, 200)
  shows(t, over, /Nothing left to confirm .*Go back/)
  if (back) t.match(over.html, `href="/dashboard${back}">Go back`, `${path}: goes back`)
  t.notMatch(over.html, 'id="confirm"', `${path}: asks nothing`)
}

t.test('revoked credentials', async (t) => {
  const { location } = await owner.post(at('keys'), { name: 'Shop', scopes: 'emails:send' })
  await ends(t, owner, `${location}/revoke`)
  await owner.post(at('integration/tokens'))
  const { html } = await owner.get(at('integration/tokens'))
  const [, token = ''] = /action="\/dashboard([^"]+\/revoke)"/.exec(html) ?? []
  await ends(t, owner, token)
})

t.test('a role of the member', async (t) => {
  await owner.post(at('people'), { email: 'nora@example.com', role: 'viewer' })
  const { html } = await owner.get(at('people'))
  const [member = ''] = new RegExp(`${at('people')}/[0-9a-f-]{36}(?=">nora@)`).exec(html) ?? []
  await ends(t, owner, `${member}/role`, { role: 'editor' })
})

t.test('a disabled webhook, and a replaced secret', async (t) => {
  const { location } = await owner.post(at('webhooks'), { url: 'https://example.com/hooks', types: '*' })
  const page = location ?? ''
  const form = formTo((await owner.get(page)).html, `${page}/rotate`)
  await ends(t, owner, `${page}/rotate`, form)
  await ends(t, owner, `${page}/disable`)
})

t.test('a template with the wanted headers, and a restored version', async (t) => {
  const made = await owner.post(at('templates'), { name: 'Letter', html: '<p>One</p>', text: '' })
  const page = made.location ?? ''
  await ends(t, owner, `${page}/list-unsubscribe`, { wanted: 'yes' })
  const id = page.split('/').at(-1) ?? ''
  const [version] = await versionsOfTemplate(database, team.id, id, 1)
  await updateTemplate(byCli(database), team.id, id, { html: '<p>Two</p>' })
  await ends(t, owner, `${page}/restore`, { version: version?.id ?? '' })
})

t.test('a published and a discarded draft lead back to the template', async (t) => {
  const made = await owner.post(at('templates'), { name: 'Drafted', html: '<p>One</p>', text: '' })
  const page = made.location ?? ''
  for (const verb of ['publish', 'discard']) {
    const seen = formTo((await owner.get(page)).html, `${page}/draft`)
    await owner.post(`${page}/draft`, { ...seen, html: `<p>${verb}</p>`, text: '' })
    const shown = verb === 'publish' ? `${page}/changes` : page
    const form = formTo((await owner.get(shown)).html, `${page}/${verb}`)
    await ends(t, owner, `${page}/${verb}`, form, page)
  }
})

t.test('a rotated DKIM key', async (t) => {
  await owner.post(at('domains'), { name: 'rotated.test' })
  const page = at('domains/rotated.test')
  const { html } = await owner.get(page)
  const [name = ''] = /hg\w+\._domainkey\.rotated\.test/.exec(html) ?? []
  published.set(name, [/v=DKIM1; k=rsa; p=[\w+/]+={0,2}/.exec(textOf(html))?.[0] ?? ''])
  await owner.post(`${page}/verify`)
  await ends(t, owner, `${page}/rekey`, formTo((await owner.get(page)).html, `${page}/rekey`))
})

t.test('lifted suppressions', async (t) => {
  for (const email of ['one@example.org', 'two@example.org', 'three@example.org'])
    await owner.post(at('suppressions'), { email, as: 'complained', reason: 'asked by phone' })
  const all = formTo((await owner.get(at('suppressions?email=example.org'))).html, at('suppressions/lift'))
  await ends(t, owner, `${at('suppressions/lift')}?email=example.org`, { ...all, reason: 'asked again' })
})

t.test('a deleted contact', async (t) => {
  await owner.post(at('contacts'), { email: 'kim@example.org' })
  await ends(t, owner, at('contacts/kim%40example.org/delete'))
})

t.test('a paused queue, and retried jobs', async (t) => {
  await ends(t, operator, '/operator/queues/sync-whatsapp-templates/pause')
  await database.transaction((tx) =>
    service.deps.queue.enqueue(tx, 'ingest-report', [{ report_id: uuidv7() }, { report_id: uuidv7() }]),
  )
  const consumer = await openConsumer(service.url, { connections: 2, onError: () => {} })
  const claims = consumer.claims('ingest-report')
  const jobs = await claims.fetch(2)
  const end = (reason: string): End => ({ end: 'given_up', reason })
  const reasons = ['is broken', 'is lost']
  const settled = new Map(jobs.map((job, index) => [job, end(reasons[index] ?? '')] as const))
  await database.transaction((tx) => claims.settle(tx, settled))
  await consumer.stop(5_000)
  const path = '/operator/queues/ingest-report/redrive'
  const forms = formsTo(await operator.get('/operator/queues/ingest-report'), path)
  const form = forms.find(({ reason }) => reason) ?? {}
  t.match(form.reason, /^is/)
  await ends(t, operator, path, form)
})

t.test('replayed and dropped reports', async (t) => {
  const ids = [uuidv7(), uuidv7(), uuidv7()]
  const now = new Date()
  await insertReports(
    database,
    ids.map((id) => ({
      ...{ id, provider: 'smtp', event_key: id, body: Buffer.from('x'), received_at: now, retry_until: now },
    })),
  )
  await endReports(
    database,
    ids.map((id, index) => ({ id, state: 'parked', reason: ['replayed', 'dropped', 'single'][index] ?? '' })),
  )
  await ends(t, operator, '/operator/reports/drop', { id: ids[2] ?? '' })
  for (const [verb, reason] of [
    ['replay', 'replayed'],
    ['drop', 'dropped'],
  ] as const) {
    const path = `/operator/reports/${verb}`
    const [form = {}] = formsTo(await operator.get(`/operator/reports?reason=${reason}`), path)
    await ends(t, operator, `${path}?reason=${reason}`, form)
  }
})

t.test('a suspended team, and a replaced catalog', async (t) => {
  const other = await makeTeam(service)
  await ends(t, operator, `/operator/teams/${other.id}/suspend`)
  const path = '/operator/plans'
  const form = formTo((await operator.get(path)).html, path)
  const catalog = JSON.parse(form.catalog?.[0] ?? '')
  catalog.plans[0].blurb.en = 'Dearer'
  await ends(t, operator, path, { ...form, catalog: JSON.stringify(catalog) })
})

t.test('a database that isn’t a restored copy', async (t) => {
  await database.query(sql.unsafe`
    insert into paused_queues (queue, paused_at, reason) values ('deliver-test', now(), 'restored')`)
  await ends(t, operator, '/operator/queues/restored')
})
