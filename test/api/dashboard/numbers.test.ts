/** The operator's pages of WhatsApp numbers, their hourly check, and other pages that show them. */
import { sql } from 'slonik'
import { waitCause } from '../../../api/dashboard/pages/operator/queue-cells.ts'
import { limitCell, qualityCell } from '../../../api/dashboard/pages/operator/whatsapp-number-table.ts'
import { listSenders, type ShownSender } from '../../../db/delivery/senders/show.ts'
import { checkWhatsappNumbers } from '../../../workers/jobs/check-whatsapp-numbers.ts'
import { type CloudAccount, startWhatsappSandbox } from '../../sandbox/whatsapp.ts'
import { shows, signedIn, textOf } from '../../support/dashboard.ts'
import { pauseSender } from '../../support/senders.ts'
import { METRICS_TOKEN, makeTeam, startService } from '../../support/service.ts'
import t from '../../support/tap.ts'
import { makeTemplate, templateOf } from '../../support/whatsapp.ts'
import { makeDefaultNumber, makeNumber } from '../../support/whatsapp-numbers.ts'

const TOKEN = 'EAA-token-of-acme'
const number = {
  ...{ id: '901', display_phone_number: '+1 555-555-0901', verified_name: 'Acme' },
  ...{ quality_rating: 'GREEN', whatsapp_business_manager_messaging_limit: 'TIER_1K' },
}
const account: CloudAccount = {
  ...{ id: '900', token: TOKEN, app_id: '77', subscribed: false, templates: [] },
  numbers: [number],
}
const sandbox = await startWhatsappSandbox({ port: 0, accounts: [account] })
t.teardown(() => sandbox.close())
const service = await startService(t, { dashboard: { graphApi: sandbox.url } })
const operator = await signedIn(service, { operator: true })
const PATH = '/operator/numbers'
const form = { name: 'acme', phone_number_id: '901', account_id: '900', token: TOKEN }

t.test('adds a number after a check with Meta', async (t) => {
  const rejected = await operator.post(PATH, { ...form, token: 'another-token' })
  t.equal(rejected.status, 400)
  t.notMatch(rejected.html, /another-token/)
  t.notMatch((await operator.get(PATH)).html, '<h2>WhatsApp numbers', 'the title says it')
  shows(t, await operator.get(PATH), 'no default number, so messages of teams without their own number wait.')
  t.match((await operator.get(PATH)).html, 'id="lead"></p>')
  t.match(await operator.post(PATH, { ...form, app_secret: 'secret-of-acme', subscribe: 'yes' }), {
    status: 303,
  })
  t.equal(account.subscribed, true)
  shows(
    t,
    await operator.get(PATH),
    /acme \+1 555-555-0901 active 0 none yet high 1,000 a day complete checked just now/,
  )
  const page = await operator.get(`${PATH}/acme`)
  shows(t, page, /\/hooks\/whatsapp\/acme .*Verify token [0-9a-f]{32}/)
  shows(t, page, /acme active .*Waiting messages 0 Last attempt none yet/)
  shows(t, page, /Fields of the webhook messages message_template_status_update /)
  t.match(page.html, /<a href="[^"]*\/operator\/teams">No team uses it/, 'the next step')
  t.notMatch(page.html, /EAA-token|secret-of-acme/)
  for (const path of [PATH, `${PATH}/acme`])
    t.match((await operator.get(path)).html, 'id="updates"', `${path} is updated`)
})

t.test('a number has its full callback URL with PUBLIC_URL', async (t) => {
  const site = await startService(t, { publicUrl: 'https://mail.example.com/' })
  await makeNumber(site, form)
  const page = await (await signedIn(site, { operator: true })).get(`${PATH}/acme`)
  shows(t, page, 'Callback URL https://mail.example.com/hooks/whatsapp Copy')
})

t.test('checks, changes, pauses and resumes a number', async (t) => {
  account.subscribed = false
  await operator.post(`${PATH}/acme/check`)
  shows(
    t,
    await operator.get(`${PATH}/acme`),
    /Subscribe app Check now ⋯ .*Until the app is subscribed, Meta reports no deliveries or replies .*App subscribed no/,
  )
  await operator.post(`${PATH}/acme/check`, { subscribe: 'yes' })
  shows(t, await operator.get(`${PATH}/acme`), /App subscribed yes/)
  await operator.post(`${PATH}/acme/set`, { token: '', app_secret: '', messages_per_second: '20' })
  shows(t, await operator.get(`${PATH}/acme`), /Messages per second 20/)
  t.equal((await operator.post(`${PATH}/acme/set`, { messages_per_second: 'many' })).status, 400)
  await operator.post(`${PATH}/acme/pause`)
  shows(t, await operator.get(PATH), /acme .* paused by an operator /)
  shows(t, await operator.get('/operator/health'), /An operator paused the number acme on .* Show number/)
  const page = await operator.get(`${PATH}/acme`)
  shows(t, page, /acme paused .*An operator paused the number on .* Its messages wait until you resume it/)
  t.match(page.html, /<button class="">Resume number/, 'the next step')
  await operator.post(`${PATH}/acme/resume`)
  shows(t, await operator.get(PATH), /acme .* active/)
})

t.test('assigns a number to a team, which prevents its removal', async (t) => {
  await makeDefaultNumber(service, { phone_number_id: '1', account_id: '100' })
  const team = await makeTeam(service)
  const template = await makeTemplate(service, team.id)
  const path = `/operator/teams/${team.id}`
  await operator.post(`${path}/number`, { number: 'acme' })
  shows(t, await operator.get(path), /sends from the number acme/)
  t.match(await templateOf(service, template.id), { status: 'pending' })
  t.equal((await operator.post(`${PATH}/acme/remove`)).status, 409)
  shows(t, await operator.get(PATH), 'acme')
  await operator.post(`${path}/number`, { number: 'default' })
})

t.test('a queue tells how many of its numbers are paused', (t) => {
  const now = new Date()
  const queue = { queue: 'deliver-whatsapp-number', paused: false, ready: 1, deferred: 0 }
  const shown = { ...queue, workers: [{ seen_at: now.toISOString() }] } as unknown as Parameters<
    typeof waitCause
  >[0]
  const senders = (...states: string[]) =>
    states.map((state, at) => ({ key: `whatsapp:${at}`, name: `n${at}`, state })) as unknown as ShownSender[]
  const said = (...states: string[]) => waitCause(shown, senders(...states), now)
  t.strictSame(
    [said('paused'), said('paused', 'sending', 'sending'), said('paused', 'probing'), said('sending')],
    ['sender paused', '1 of 3 senders paused', '2 of 2 senders paused', ''],
  )
  t.end()
})

t.test('checks numbers hourly, and lists them as senders', async (t) => {
  number.quality_rating = 'RED'
  const notices = { from: null, operator: null, site: null }
  await checkWhatsappNumbers({ ...service.deps, graphApi: sandbox.url, notices })
  await pauseSender(service.database, { key: 'whatsapp:901', ceiling: 80 }, 600, '131048')
  await pauseSender(service.database, { key: 'whatsapp:1', ceiling: 80 }, 600, '131048')
  const metrics = (await service.call('GET', '/metrics', { key: METRICS_TOKEN })).body
  for (const line of [
    'heliograph_whatsapp_numbers{name="acme",quality="RED"} 1',
    'heliograph_senders{provider="whatsapp",name="acme",state="paused"} 1',
    'heliograph_senders{provider="whatsapp",name="default",state="paused"} 1',
  ])
    t.match(metrics, line)
  t.strictSame(
    (await listSenders(service.database)).map(({ key, name }) => [key, name]),
    [
      ['whatsapp:1', 'default'],
      ['whatsapp:901', 'acme'],
    ],
  )
  t.notMatch(textOf((await operator.get('/operator/queues')).html), 'is waiting for', 'nothing waits')
  await service.database.query(sql.unsafe`
    insert into pgboss.job (name, data, group_id)
    values ('deliver-whatsapp', '{"team_id": "1"}', null), ('deliver-whatsapp-parts', '{"team_id": "2"}', null),
      ('deliver-whatsapp-number', '{"team_id": "3"}', 'whatsapp:901'),
      ('deliver-whatsapp-number', '{"team_id": "4"}', 'whatsapp:902')`)
  const page = await operator.get('/operator/senders')
  shows(t, page, /default whatsapp:1 paused (just now|\d+ seconds ago) .* 2 WhatsApp messages of 2 teams/)
  t.match(page.html, 'href="/dashboard/operator/numbers/acme">acme')
  shows(t, page, /acme whatsapp:901 paused (just now|\d+ seconds ago) .* 1 WhatsApp message of 1 team/)
  const queues = await operator.get('/operator/queues')
  const cause =
    /The queue WhatsApp of teams’ own numbers is waiting for the number acme\. 131048\. Next attempt in \d+ min /
  shows(t, queues, cause)
  shows(t, queues, 'The queue WhatsApp is waiting for the default number.')
  shows(
    t,
    await operator.get('/operator/health'),
    /acme \+1 555-555-0901 paused automatically, \d+ min \d+ s left 0 .* low 1,000 a day complete checked /,
  )
  const paused = await operator.get(`${PATH}/acme`)
  shows(
    t,
    paused,
    /acme paused .*The number is paused automatically for another \d+ min \d+ s\. 131048\. Waiting: 1 WhatsApp message of 1 team\. Show senders /,
  )
  t.match(paused.html, /<button class="quiet">Resume number/, 'it is attempted anyway')
  const unknown = { quality: qualityCell('BLUE').text, limit: limitCell('TIER_NEW').text }
  t.strictSame(unknown, { quality: 'BLUE', limit: 'TIER_NEW' }, 'as Meta names them')
  t.strictSame(
    ['TIER_250', 'TIER_10K', 'TIER_UNLIMITED'].map((tier) => limitCell(tier).text),
    ['250 a day', '10,000 a day', 'unlimited'],
  )
  const team = await makeTeam(service)
  const viewer = await signedIn(service, { team: team.id, role: 'viewer' })
  shows(t, await viewer.get(`/teams/${team.id}`), 'WhatsApp messages are sent when delivery resumes')
  await service.database.query(sql.unsafe`update senders set paused_until = null where key = 'whatsapp:1'`)
  const others = await viewer.get(`/teams/${team.id}`)
  t.notMatch(textOf(others.html), 'Delivery is paused', "another team's number")
  account.token = 'replaced'
  await checkWhatsappNumbers({ ...service.deps, graphApi: sandbox.url, notices })
  t.match(textOf((await operator.get(`${PATH}/acme`)).html), /Meta rejects the access token/)
  t.equal((await operator.post(`${PATH}/acme/remove`)).status, 303)
  shows(
    t,
    await operator.get(PATH),
    /Default ID 1 no worker all others .* – – in the workers’ settings not checked/,
  )
})
