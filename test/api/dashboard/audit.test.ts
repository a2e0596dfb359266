/**
 * Audit entries of the dashboard, with the user's address. test/db/admin/audit.test.ts has the use cases that
 * the CLI shares. Changes by API clients and recipients have no entries.
 */
import { auditEntries } from '../../../db/accounts/audit/audit.sql.ts'
import { topicsOfTeam } from '../../../db/audience/contacts/topics.sql.ts'
import { endReports } from '../../../db/delivery/reports/reports.sql.ts'
import { storeReports } from '../../../db/delivery/reports/store.ts'
import { formsTo, type Seen, signedIn, type Visitor } from '../../support/dashboard.ts'
import { formTo } from '../../support/forms.ts'
import { storedReports } from '../../support/reports.ts'
import { anEmail, world } from '../../support/service.ts'
import t, { type Test } from '../../support/tap.ts'
import { aMessage, makeTemplate, rowsOf, setFailed } from '../../support/whatsapp.ts'

const { service, database, team } = await world(t, { publicUrl: 'https://mail.example.com' })
const owner = await signedIn(service, { team: team.id, role: 'owner' })
const operator = await signedIn(service, { operator: true })
const UUID = /^[0-9a-f-]{36}$/

const api = async (method: 'POST' | 'PATCH' | 'DELETE', path: string, body?: Record<string, unknown>) =>
  (await service.call(method, path, { key: team.key, ...(body ? { body } : {}) })).body

const lines = () => auditEntries(database, { limit: 1_000 })

/** Runs `work`. @returns the entries that it adds. */
async function linesOf(work: () => Promise<unknown>) {
  const known = new Set((await lines()).map(({ id }) => id))
  await work()
  return (await lines()).filter(({ id }) => !known.has(id))
}

type Line = {
  action: string
  subject: string | RegExp
  detail?: string | RegExp
  team_id?: string | RegExp | null
}

/** Sends a form that must add exactly this entry. @returns the location of its redirect. */
async function leaves(
  t: Test,
  who: Visitor,
  [path, form = {}]: [path: string, form?: Record<string, string | string[]>],
  line: Line,
): Promise<string> {
  let sent: Seen | undefined
  const left = await linesOf(async () => {
    sent = await who.post(path, form)
  })
  t.equal(sent?.status, 303, path)
  t.match(left, [{ actor: who.email, team_id: team.id, detail: /^$/, ...line }], path)
  t.equal(left.length, 1, `${path}: one line`)
  return sent?.location ?? ''
}

const at = (rest: string) => `/teams/${team.id}/${rest}`
/** Creates a topic. @returns its ID. */
async function topicOf(name: string): Promise<string> {
  await owner.post(at('topics'), { name })
  return (await topicsOfTeam(database, team.id)).find((topic) => topic.name === name)?.id ?? ''
}
const lastOf = (path: string) => path.split('/').at(-1) ?? ''

t.test('audits contacts: created, changed, unsubscribed, resubscribed, deleted', async (t) => {
  const subject = 'Ana@example.org'
  const page = at('contacts/ana%40example.org')
  await leaves(t, owner, [at('contacts'), { email: subject }], { action: 'contact.create', subject })
  const fields = { 'new_name.0': 'city', 'new_value.0': 'Wien' }
  await leaves(t, owner, [page, fields], { action: 'contact.change', subject })
  for (const verb of ['unsubscribe', 'resubscribe', 'delete'])
    await leaves(t, owner, [`${page}/${verb}`], { action: `contact.${verb}`, subject })
})

t.test('audits broadcasts: drafts, a start, and another round', async (t) => {
  const topic = await topicOf('News')
  await api('POST', '/v1/contacts', { email: 'cat@example.org', topic_ids: [topic] })
  const made = await owner.post(at('templates'), { name: 'N', html: '{{unsubscribe_url}}', text: '' })
  const fields = { name: 'May', template_id: lastOf(made.location ?? ''), from: 'hello@example.com' }
  const form = { ...fields, subject: 'Hi' }
  const create = { action: 'broadcast.create', subject: 'May', detail: UUID }
  const page = await leaves(t, owner, [at('broadcasts/new'), form], create)
  const id = lastOf(page)
  const june = { subject: 'June', detail: id }
  const shown = async (from: string, to: string) => formTo((await owner.get(from)).html, to)
  const aimed = { ...(await shown(`${page}/edit?step=audience`, `${page}/edit`)), topic_ids: topic }
  const update = { action: 'broadcast.update', detail: id }
  await leaves(t, owner, [`${page}/edit`, aimed], { ...update, subject: 'May' })
  const edited = { ...(await shown(`${page}/edit`, `${page}/edit`)), name: 'June' }
  await leaves(t, owner, [`${page}/edit`, edited], { ...update, ...june })
  const pressed = { ...(await shown(page, `${page}/send`)), confirmed: 'yes' }
  await leaves(t, owner, [`${page}/send`, pressed], { action: 'broadcast.start', ...june })
  await leaves(t, owner, [`${page}/cancel`], { action: 'broadcast.cancel', ...june })
  const more = { ...(await shown(`${page}/again`, `${page}/again`)), confirmed: 'yes' }
  await leaves(t, owner, [`${page}/again`, more], { action: 'broadcast.again', ...june })
  const other = await leaves(t, owner, [at('broadcasts/new'), form], create)
  const gone = { action: 'broadcast.delete', subject: 'May', detail: lastOf(other) }
  await leaves(t, owner, [`${other}/delete`], gone)
})

t.test('audits messages: requeued, resent and forced', async (t) => {
  const { id } = await api('POST', '/v1/emails', anEmail())
  await leaves(t, owner, [at(`emails/${id}/requeue`)], { action: 'email.requeue', subject: id })
  const resend = { action: 'email.resend', subject: id, detail: UUID }
  const page = await leaves(t, owner, [at(`emails/${id}/resend`), { to: 'right@example.org' }], resend)
  const [resent] = (await lines()).filter(({ action }) => action === 'email.resend')
  t.equal(resent?.detail, lastOf(page), 'it names the new email')
  await api('POST', '/v1/whatsapp/messages', aMessage((await makeTemplate(service, team.id)).id))
  const subject = (await rowsOf(service, team.id)).at(-1)?.id ?? ''
  await setFailed(service, subject)
  const forced = { action: 'whatsapp.requeue', subject, detail: 'it had been rejected' }
  await leaves(t, owner, [at(`whatsapp/${subject}/requeue`), { force: 'refused' }], forced)
})

async function park(event_key: string): Promise<string> {
  const raw = { provider: 'smtp', event_key, body: Buffer.from('x'), received_at: new Date() } as const
  await database.transaction((tx) => storeReports({ tx, queue: service.deps.queue }, [raw]))
  const id = (await storedReports(service)).at(-1)?.id ?? ''
  await endReports(database, [{ id, state: 'parked', reason: 'unreadable' }])
  return id
}

t.test('audits operators: teams and parked reports', async (t) => {
  const create = { action: 'team.create', subject: 'Other', detail: 'free', team_id: UUID }
  await leaves(t, operator, ['/operator/teams', { name: 'Other', plan: 'free' }], create)
  const all = { team_id: null }
  const one = await park('one')
  const read = await linesOf(() => operator.get(`/operator/reports/${one}`))
  t.match(read, [{ ...all, actor: operator.email, action: 'report.read', subject: one, detail: /^$/ }])
  await leaves(t, operator, ['/operator/reports/replay', { id: one }], {
    ...{ ...all, action: 'report.replay', subject: one },
  })
  await park('two')
  const [many = {}] = formsTo(
    await operator.get('/operator/reports?provider=smtp&reason=unread'),
    '/operator/reports/drop',
  )
  const drop = { action: 'report.drop', subject: 'parked', detail: 'provider: smtp, reason: unread' }
  await leaves(t, operator, ['/operator/reports/drop', many], { ...all, ...drop })
})

t.test("changes by API clients and rejected actions aren't audited", async (t) => {
  const topic = await topicOf('More')
  const left = await linesOf(async () => {
    await api('POST', '/v1/contacts', { email: 'bob@example.org', topic_ids: [topic] })
    await api('PATCH', '/v1/contacts/bob@example.org', { properties: { city: 'Graz' } })
    for (const verb of ['unsubscribe', 'resubscribe'])
      await api('POST', `/v1/contacts/bob@example.org/${verb}`, {})
    await api('DELETE', '/v1/contacts/bob@example.org')
    const template_id = lastOf(
      (await owner.post(at('templates'), { name: 'M', html: '{{unsubscribe_url}}', text: '' })).location ??
        '',
    )
    const fields = { name: 'July', template_id, from: 'hello@example.com', subject: 'Hi' }
    const { id } = await api('POST', '/v1/broadcasts', { ...fields, topic_ids: [topic] })
    await api('PATCH', `/v1/broadcasts/${id}`, { name: 'August' })
    await api('POST', `/v1/broadcasts/${id}/cancel`)
    t.equal((await owner.post(at(`emails/${id}/delete`))).status, 404)
    t.equal((await owner.post(at(`broadcasts/${id}/pause`))).status, 409)
  })
  t.match(left, [{ action: 'template.create' }])
  t.equal(left.length, 1)
})
