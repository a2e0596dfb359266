/** The page of the audit log with its filters, labels, links and CSV. */
import { v7 as uuidv7 } from 'uuid'
import { entryLabel } from '../../../api/dashboard/components/action-labels.ts'
import { auditEntries, insertAuditEntry } from '../../../db/accounts/audit/audit.sql.ts'
import { topicsOfTeam } from '../../../db/audience/contacts/topics.sql.ts'
import { type Seen, shows, signedIn, textOf } from '../../support/dashboard.ts'
import { formTo } from '../../support/forms.ts'
import { makeTeam, sendEmail, world } from '../../support/service.ts'
import t from '../../support/tap.ts'
import { aTemplate, makeTemplate, sendWhatsapp } from '../../support/whatsapp.ts'

const { service, database, team } = await world(t, { publicUrl: 'https://mail.example.com' })
const owner = await signedIn(service, { team: team.id, role: 'owner' })
const operator = await signedIn(service, { operator: true })

const api = async (method: 'POST' | 'PATCH' | 'DELETE', path: string, body?: Record<string, unknown>) =>
  (await service.call(method, path, { key: team.key, ...(body ? { body } : {}) })).body

const lines = () => auditEntries(database, { limit: 1_000 })

const at = (rest: string) => `/teams/${team.id}/${rest}`
/** Creates a topic. @returns its ID. */
async function topicOf(name: string): Promise<string> {
  await owner.post(at('topics'), { name })
  return (await topicsOfTeam(database, team.id)).find((topic) => topic.name === name)?.id ?? ''
}
/** The text of the list, without its filter, which names all actions. */
const entriesIn = ({ html }: Seen) => textOf(html.slice(html.indexOf('<table')))
const lastOf = (path: string) => path.split('/').at(-1) ?? ''

t.test('the filter suggests users and lists the actions', async (t) => {
  const member = await signedIn(service, { team: team.id, role: 'viewer' })
  const { html } = await owner.get(at('audit?action=added%20a%20domain'))
  const [, offers = ''] = /<datalist[^>]*>(.*?)<\/datalist>/.exec(html) ?? []
  for (const user of [owner.email, member.email, 'command line']) t.match(offers, `value="${user}"`)
  const [, actions = ''] = /<select id="[^"]*" name="action"[^>]*>(.*?)<\/select>/.exec(html) ?? []
  t.match(actions, /^<option value="">any<\/option>/)
  t.match(actions, '<option value="Added a domain">')
  t.match(actions, '<option value="added a domain" selected>', 'the action in the URL')
  const all = (await operator.get('/operator/audit')).html
  t.notMatch(all, `value="${owner.email}"`, 'users of all teams are not listed')
  const [, others = ''] = /<datalist[^>]*>(.*?)<\/datalist>/.exec(all) ?? []
  t.equal(others.match(/<option/g)?.length, 1, 'only the command line')
})

t.test('an operator exports the entries of all teams', async (t) => {
  const other = await makeTeam(service, { domain: 'exported.test' })
  const stranger = await signedIn(service, { team: other.id, role: 'owner' })
  await stranger.post(`/teams/${other.id}/topics`, { name: 'Exported' })
  const { html } = await operator.get('/operator/audit?action=Created+a+topic')
  const [, href = ''] = /href="\/dashboard([^"]*audit\.csv[^"]*)"/.exec(html) ?? []
  const file = await operator.get(href.replaceAll('&#x3D;', '='))
  t.match(file.headers.get('content-type'), 'text/csv')
  const [head, ...rows] = file.html.trim().split('\r\n')
  t.match(head, /time,user,action,code,object,detail,team,team_id$/)
  t.match(
    rows[0],
    new RegExp(`${stranger.email},Created a topic,topic\\.create,Exported,.*,A team,${other.id}$`),
  )
  t.ok(
    rows.every((row) => row.includes('topic.create')),
    'only what matches',
  )
  t.match(await auditEntries(database, { limit: 1 }), [
    { action: 'audit.export', actor: operator.email, team_id: null, subject: 'action=Created+a+topic' },
  ])
  t.equal((await owner.get('/operator/audit.csv')).status, 404)
  t.equal((await operator.get('/operator/audit.csv?eaten=1')).status, 400)
})

t.test('the page distinguishes actions with the same code, and has their times', async (t) => {
  const topic = await topicOf('Dates')
  const template_id = lastOf(
    (await owner.post(at('templates'), { name: 'Dates', html: '{{unsubscribe_url}}', text: '' })).location ??
      '',
  )
  await api('POST', '/v1/contacts', { email: 'dot@example.org', topic_ids: [topic] })
  const draft = { template_id, from: 'hello@example.com', subject: 'Dates', topic_ids: [topic] }
  const start = async (name: string, more: Record<string, unknown>) => {
    const { id } = await api('POST', '/v1/broadcasts', { ...draft, name, ...more, idempotency_key: name })
    const page = at(`broadcasts/${id}`)
    const form = formTo((await owner.get(page)).html, `${page}/send`)
    t.equal((await owner.post(`${page}/send`, { ...form, confirmed: 'yes' })).status, 303, name)
    return page
  }
  const send_at = new Date(Date.now() + 86_400_000).toISOString()
  await start('Now', {})
  await start('Later', { send_at })
  const page = await start('Withdrawn', { send_at })
  await owner.post(`${page}/unschedule`)
  await owner.post(at('people'), { email: 'role@example.com', role: 'viewer' })
  const [, member = ''] =
    new RegExp(`(${at('people')}/[0-9a-f-]{36})">role@`).exec((await owner.get(at('people'))).html) ?? []
  await owner.post(`${member}/role`, { role: 'editor' })
  await owner.post(at('domains/example.com/ed25519'), { on: 'on' })
  await owner.post(at('domains/example.com/ed25519'), { on: '' })
  const list = await owner.get(at('audit'))
  for (const words of [
    `Started a broadcast ${owner.email} Now`,
    `Scheduled a broadcast ${owner.email} Later`,
    `Scheduled a broadcast ${owner.email} Withdrawn`,
    `Added a member ${owner.email} role@example.com viewer`,
    `Changed a member’s role ${owner.email} role@example.com viewer → editor`,
    `Turned on a domain’s Ed25519 key ${owner.email} example.com`,
    `Turned off a domain’s Ed25519 key ${owner.email} example.com`,
  ])
    shows(t, list, words)
  shows(t, list, /\d+ \w+ 20\d\d, \d\d:\d\d:\d\d UTC/)
  shows(t, list, 'When Action By About')
  t.notMatch(textOf(list.html), 'just now')
  const found = await owner.get(at('audit?action=scheduled+a+broadcast'))
  shows(t, found, `Scheduled a broadcast ${owner.email} Later`)
  t.notMatch(entriesIn(found), /Added a member|Started a broadcast/)
  const started = await owner.get(at('audit?action=started+a+broadcast'))
  shows(t, started, `Started a broadcast ${owner.email} Now`)
  t.notMatch(entriesIn(started), 'Scheduled a broadcast')
  const off = await owner.get(at(`audit?action=${encodeURIComponent('Turned off a domain’s Ed25519 key')}`))
  shows(t, off, `Turned off a domain’s Ed25519 key ${owner.email} example.com`)
  t.notMatch(entriesIn(off), 'Turned on')
  const none = await owner.get(at('audit?action=changed+the+limits'))
  shows(t, none, 'No entry matches.')
  const starts = await owner.get(at('audit?action=broadcast.start'))
  shows(t, starts, /Scheduled a broadcast \S+ Later .*Started a broadcast \S+ Now/)
})

t.test('actions have labels to search, and codes in the tooltip', async (t) => {
  await owner.post(at('topics'), { name: 'Said' })
  shows(t, await owner.get(at('audit')), / Created a topic \S+ Said /)
  t.match((await owner.get(at('audit'))).html, /title="Created a topic \(topic\.create\)"/)
  const created = entriesIn(await owner.get(at('audit?action=created+a+topic')))
  t.match(created, / Created a topic \S+ Said /)
  t.notMatch(created, 'Created a contact')
  const actions = [...new Set((await lines()).map(({ action }) => action))]
  t.equal(actions.filter((action) => entryLabel({ action, detail: '' }, undefined) === action).join(), '')
})

t.test('an entry links to its object until that is deleted', async (t) => {
  const own = await makeTeam(service, { domain: 'linked.test' })
  const boss = await signedIn(service, { team: own.id, role: 'owner' })
  const page = `/teams/${own.id}`
  const topic = async (name: string) => {
    await boss.post(`${page}/topics`, { name })
    return (await topicsOfTeam(database, own.id)).find((each) => each.name === name)?.id ?? ''
  }
  const [kept, gone] = [await topic('Kept'), await topic('Gone')]
  await boss.post(`${page}/topics/${gone}/delete`)
  await boss.post(`${page}/domains`, { name: 'second.test' })
  await boss.post(`${page}/contacts`, { email: 'Zoe@example.org' })
  const id = await sendEmail(service, own, { from: 'a@linked.test' })
  await boss.post(`${page}/emails/${id}/requeue`)
  const template = await makeTemplate(service, own.id)
  const [message = ''] = await sendWhatsapp(service, own, template.id)
  await boss.post(`${page}/whatsapp/${message}/requeue`)
  await boss.post(`${page}/whatsapp-templates`, {
    definition: JSON.stringify(aTemplate({}, { name: 'ours' })),
  })
  const [made] = await lines()
  const { html } = await boss.get(`${page}/audit`)
  for (const path of [
    `topics/${kept}`,
    'domains/second.test',
    'contacts/Zoe%40example.org',
    `emails/${id}`,
    `whatsapp/${message}`,
    `whatsapp-templates/${made?.detail}`,
  ])
    t.ok(html.includes(`href="/dashboard${page}/${path}"`), path)
  shows(t, { html }, 'Gone')
  t.notMatch(html, `topics/${gone}`)
  await operator.post('/operator/queues/deliver-whatsapp/pause')
  await operator.post('/operator/queues/deliver-whatsapp/resume')
  t.match((await operator.get('/operator/audit')).html, 'href="/dashboard/operator/queues/deliver-whatsapp"')
})

t.test("filters the audit log, and owners only see their team's", async (t) => {
  const team = await makeTeam(service, { domain: 'audit.test' })
  const other = await makeTeam(service, { domain: 'elsewhere.test' })
  const owner = await signedIn(service, { team: team.id, role: 'owner' })
  const editor = await signedIn(service, { team: team.id, role: 'editor' })
  await owner.post(`/teams/${team.id}/topics`, { name: 'Ours' })
  await editor.post(`/teams/${team.id}/topics`, { name: 'Edited' })
  const there = await signedIn(service, { team: other.id, role: 'owner' })
  await there.post(`/teams/${other.id}/topics`, { name: 'Theirs' })
  const own = await owner.get(`/teams/${team.id}/audit`)
  shows(t, own, 'Edited')
  t.notMatch(own.html, /Theirs/)
  const found = await owner.get(`/teams/${team.id}/audit?actor=${owner.email}&action=topic&from=2020-01-01`)
  shows(t, found, 'Ours')
  t.notMatch(found.html, /Edited/)
  const part = owner.email.slice(2, -8).toUpperCase()
  const byPart = await owner.get(`/teams/${team.id}/audit?actor=${part}&action=topic`)
  shows(t, byPart, 'Ours')
  t.notMatch(byPart.html, /Edited|Theirs/)
  shows(t, await owner.get(`/teams/${team.id}/audit?to=2020-01-01`), 'No entry matches.')
  shows(t, await operator.get('/operator/audit?action=topic'), /Created a topic \S+ Theirs A team/)
})

t.test('the audit log finds the CLI by its shown name', async (t) => {
  const team = await makeTeam(service, { domain: 'cli.test' })
  const owner = await signedIn(service, { team: team.id, role: 'owner' })
  const at = new Date()
  const entry = { team_id: team.id, actor: 'cli', action: 'topic.create', subject: 'Typed', detail: '' }
  await insertAuditEntry(database, { ...entry, id: uuidv7() }, at)
  await owner.post(`/teams/${team.id}/topics`, { name: 'Clicked' })
  shows(
    t,
    await owner.get(`/teams/${team.id}/audit`),
    /Created a topic \S+ Clicked .*Created a topic command line Typed/,
  )
  const found = await owner.get(`/teams/${team.id}/audit?actor=Command+line`)
  shows(t, found, /Created a topic command line Typed/)
  t.notMatch(found.html, 'Clicked')
})

t.test('names the API key or session token of an entry, and finds it by that name', async (t) => {
  const team = await makeTeam(service, { domain: 'credentials.test' })
  const owner = await signedIn(service, { team: team.id, role: 'owner' })
  for (const actor of ['hg_Ab12xyz', 'hgs_Ab12xy', 'hg_a@b.com', 'recipient']) {
    const entry = { team_id: team.id, actor, action: 'topic.create', subject: `of ${actor}`, detail: '' }
    await insertAuditEntry(database, { ...entry, id: uuidv7() }, new Date())
  }
  const all = await owner.get(`/teams/${team.id}/audit?action=topic`)
  shows(t, all, /Created a topic API key hg_Ab12xyz of/)
  shows(t, all, /Created a topic session token hgs_Ab12xy of/)
  t.notMatch(textOf(all.html), /(key|token) (hg_a@|recipient)/)
  for (const words of ['api+key+hg_Ab12xyz', 'hg_Ab12']) {
    const found = await owner.get(`/teams/${team.id}/audit?actor=${words}`)
    shows(t, found, / of hg_Ab12xyz/)
    t.notMatch(found.html, /of (hgs_|recipient)/)
  }
  const file = await owner.get(`/teams/${team.id}/audit.csv?action=topic`)
  t.match(file.html, ',hg_Ab12xyz,Created a topic,', 'the value as stored')
})

t.test('owners export the entries that match as CSV', async (t) => {
  const own = await makeTeam(service, { domain: 'exported.test' })
  const boss = await signedIn(service, { team: own.id, role: 'owner' })
  for (const name of ['Rolls', 'Bread']) await boss.post(`/teams/${own.id}/topics`, { name })
  await boss.post(`/teams/${own.id}/settings`, { suppress_transactional: 'nothing' })
  const list = await boss.get(`/teams/${own.id}/audit?action=topic`)
  const [, href = ''] = /href="\/dashboard([^"]*audit\.csv[^"]*)">Export as CSV</.exec(list.html) ?? []
  const file = await boss.get(href.replaceAll('&#x3D;', '='))
  t.match(file.headers.get('content-disposition'), /^attachment; filename="audit-[\d-]+\.csv"$/)
  const [head, ...rows] = file.html.trim().split('\r\n')
  t.match(head, 'time,user,action,code,object,detail')
  t.match(rows, [
    new RegExp(`^\\d{4}-.*,${boss.email},Created a topic,topic\\.create,`),
    new RegExp(`,${boss.email},Created a topic,`),
  ])
  t.equal(rows.length, 2)
  const editor = await signedIn(service, { team: own.id, role: 'editor' })
  t.equal((await editor.get(`/teams/${own.id}/audit.csv`)).status, 403)
})
