/** Data that members must not see, and that operators can't see without an audit entry. */
import { sql } from 'slonik'
import { PAGES } from '../../../api/dashboard/routes.ts'
import { auditEntries } from '../../../db/accounts/audit/audit.sql.ts'
import { DEMO_TEMPLATE } from '../../sandbox/whatsapp-magic.ts'
import { aBroadcast } from '../../support/broadcasts.ts'
import { shows, signedIn, textOf, visitor } from '../../support/dashboard.ts'
import { ageEmailRows } from '../../support/email-rows.ts'
import { pauseSender } from '../../support/senders.ts'
import { world } from '../../support/service.ts'
import t from '../../support/tap.ts'
import { makeTemplate, sendWhatsapp } from '../../support/whatsapp.ts'

const { service, database, call, team, send } = await world(t, { dashboard: { from: 'login@example.com' } })
const owner = await signedIn(service, { team: team.id, role: 'owner' })
const operator = await signedIn(service, { operator: true })
const home = `/teams/${team.id}`

const template = await makeTemplate(service, team.id, DEMO_TEMPLATE)

const parameters = Object.fromEntries(template.slots.map((slot) => [slot, 'private word']))

const WORDS = '550 5.7.1 <vip.client@secret-bank.test>: Relay access denied; customer 4711'
const SENDER = { key: 'smtp:relay.internal.test', ceiling: 10 }

t.test("teams don't see a paused sender's name and response", async (t) => {
  const held = await send()
  const [message = ''] = await sendWhatsapp(service, team, template.id, { parameters })
  await ageEmailRows(service, sql.fragment`id = ${held}`, '10 minutes')
  await database.query(sql.unsafe`
    insert into email_events (team_id, email_id, event_key, kind, recipient, occurred_at, detail)
    values (${team.id}, ${held}, uuid_send(gen_random_uuid()), 'held', 'someone@example.org', now(), ${WORDS})`)
  await database.transaction((tx) => pauseSender(tx, SENDER, 600, WORDS))
  await database.transaction((tx) => pauseSender(tx, { key: 'whatsapp:4711', ceiling: 10 }, 600, WORDS))
  for (const path of [home, `${home}/emails/${held}`, `${home}/whatsapp/${message}`]) {
    const seen = await owner.get(path)
    shows(t, seen, 'Delivery is paused. We retry automatically')
    t.notMatch(seen.html, /secret-bank|4711|relay\.internal|smtp:|whatsapp:/, path)
    shows(t, await operator.get(path), WORDS)
  }
  await database.query(sql.unsafe`delete from senders`)
})

t.test("sign-in emails aren't in lists, exports, stats and bulk actions", async (t) => {
  const own = await send({ to: [owner.email], subject: 'Our own', tags: ['heliograph:sign-in-link'] })
  await visitor(service).post('/login', { email: owner.email })
  const id = await database.oneFirst(sql.unsafe`
    select id from emails where team_id = ${team.id} and subject = 'Your sign-in link'`)
  await call('POST', '/v1/contacts', { key: team.key, body: { email: owner.email } })
  for (const path of [
    'emails',
    'emails?tag=heliograph:sign-in-link',
    'emails.csv',
    `contacts/${owner.email}`,
  ]) {
    const { html } = await owner.get(`${home}/${path}`)
    t.match(html, own, `${path}: the team’s own`)
    t.notMatch(html, id, path)
    t.notMatch(html, 'Your sign-in link', path)
  }
  shows(t, await owner.get(`${home}/emails/all?tag=heliograph:sign-in-link`), '1 email')
  t.equal((await owner.get(`${home}/emails/${id}`)).status, 404)
  t.equal((await owner.get(`${home}/emails/${id}/preview`)).status, 404)
  t.equal((await owner.post(`${home}/emails/${id}/copy`)).status, 404)
  shows(t, await owner.get(`/find?id=${id}`), 'No message')
  const looked = await operator.get(`${home}/emails/${id}/content`)
  shows(t, looked, 'only its recipient can see it')
  t.notMatch(looked.html, /dashboard\/login\//)
  await ageEmailRows(service, sql.fragment`team_id = ${team.id}`, '10 minutes')
  const mails = Number(/(\d+) emails? waiting/.exec(textOf((await owner.get(home)).html))?.[1])
  const rows = (await owner.get(`${home}/emails.csv`)).html.trim().split('\r\n').length - 1
  t.equal(mails, rows)
  shows(t, await owner.get(home), new RegExp(`By day \\(UTC\\) .* 0 0 ${rows} 0 0 ${rows} `))
})

t.test("a customer's tag with our internal name hides nothing", async (t) => {
  const tags = ['heliograph:sign-in-link', 'spring']
  const tagged = await send({ subject: 'Tagged', tags, text: 'plain words' })
  t.match((await owner.get(`${home}/emails/${tagged}?view=text`)).html, 'plain words')
  const { location } = await owner.post(`${home}/emails/${tagged}/resend`, { to: 'else@example.org' })
  const again = location?.split('/').at(-1) ?? ''
  shows(t, await owner.get(location ?? ''), 'Tags heliograph:sign-in-link, spring')
  for (const tag of tags) t.match((await owner.get(`${home}/emails?tag=${tag}`)).html, new RegExp(again))
})

t.test("audits an operator's looks at another team’s content and exports", async (t) => {
  const [message = ''] = await sendWhatsapp(service, team, template.id, { parameters })
  const traces = async () =>
    (await auditEntries(database, { team: team.id, limit: 50 })).flatMap(({ actor, action }) =>
      actor === operator.email ? [action] : [],
    )
  const before = (await traces()).length
  t.notMatch((await operator.get(`${home}/whatsapp/${message}`)).html, 'private word')
  t.equal((await traces()).length, before)
  shows(t, await operator.get(`${home}/whatsapp/${message}/content`), 'private word')
  t.strictSame((await traces()).slice(0, (await traces()).length - before), ['whatsapp.open'])
  const uploaded = await owner.upload(`${home}/contacts/import`, 'people.csv', 'email\na@example.org\n')
  const ids: Record<string, string | undefined> = {
    broadcasts: (await aBroadcast(service, team)).id,
    imports: uploaded.location?.split('/').at(-1),
  }
  // The example files have no data of a team. The audit log of all teams is in audit-log.test.ts.
  const exports = PAGES.filter(({ path }) => /^\/teams\/.*(?<!\/example)\.csv$/.test(path))
  const files = exports.map(({ path }) =>
    path.replace('/teams/:team', home).replace(/(\w+)\/:id/, (_, list) => `${list}/${ids[list]}`),
  )
  for (const file of files) {
    const known = (await traces()).length
    t.equal((await operator.get(file)).status, 200, file)
    const [trace, ...others] = (await traces()).slice(0, (await traces()).length - known)
    t.match(trace, /^(audit|contact|email|suppression|broadcast|whatsapp)\.export$/, file)
    t.strictSame(others, [], file)
  }
  const all = (await traces()).length
  shows(t, await owner.get(`${home}/whatsapp/${message}`), 'private word')
  for (const file of files) t.equal((await owner.get(file)).status, 200, file)
  t.equal((await traces()).length, all, 'a member leaves none')
})
