/** Management of endpoints: the CLI, the dashboard, the sandbox. */
import { sql } from 'slonik'
import { number, object, string } from 'yup'
import { shortAnswer } from '../../../api/dashboard/pages/webhooks/parts.ts'
import { purgeMessages } from '../../../db/maintenance/retention/purge.ts'
import { startInbox } from '../../sandbox/inbox.ts'
import { formsTo, shows, signedIn, textOf } from '../../support/dashboard.ts'
import { isVerified, startReceiver } from '../../support/receiver.ts'
import { storeContact, storeEmails } from '../../support/reports.ts'
import { KEPT } from '../../support/retention.ts'
import { anEmail, makeTeam } from '../../support/service.ts'
import t from '../../support/tap.ts'
import { happen, startWebhooks } from '../../support/webhooks.ts'
import { startWorker, until } from '../../support/worker.ts'

const { service, rows, cli, begin } = await startWebhooks(t)

t.test('a team can change and remove up to ten endpoints', async (t) => {
  const { team, endpoint, receiver } = await begin(t)
  const set = ['webhook', 'set', team.id, endpoint.id]
  t.match(
    await cli.json([
      ...set,
      '--name',
      'Billing',
      '--types',
      'email.sent,email.sent',
      '--domain',
      'example.com',
    ]),
    { name: 'Billing', types: ['email.sent'], domain: 'example.com' },
  )
  const entries = async () => (await cli.json(['audit', 'list', '--team', team.id])).length
  const toAll = [...set, '--domain', 'none', '--types', '*']
  t.match(await cli.json(toAll), { types: ['*'], domain: null })
  const before = await entries()
  await cli.json(toAll)
  t.equal(await entries(), before, 'nothing changed')
  t.match(await cli.fault([...set, '--types', 'email.eaten']), /"email.eaten" isn't one of/)
  t.match(await cli.fault([...set, '--domain', 'other.test']), /no domain other.test/)
  for (let more = 1; more < 10; more += 1) await cli.json(['webhook', 'add', team.id, '--url', receiver.url])
  t.match(await cli.fault(['webhook', 'add', team.id, '--url', receiver.url]), /at most 10/)
  t.match(await cli.json(['webhook', 'remove', team.id, endpoint.id]), { id: endpoint.id, removed: true })
  t.match(await cli.fault(['webhook', 'show', team.id, endpoint.id]), /No webhook/)
  t.equal((await cli.json(['webhook', 'list', team.id])).length, 9)
  const acts = (await cli.json(['audit', 'list', '--team', team.id])).map(
    ({ action }: { action: string }) => action,
  )
  for (const act of ['webhook.add', 'webhook.set', 'webhook.remove']) t.ok(acts.includes(act), act)
})

t.test('the event log lists a team’s matching events, newest first', async (t) => {
  const { team, receiver, endpoint } = await begin(t)
  const other = await begin(t)
  const second = await cli.json(['webhook', 'add', team.id, '--url', `${receiver.url}2`, '--name', 'Second'])
  const viewer = await signedIn(service, { team: team.id, role: 'viewer' })
  const log = `/teams/${team.id}/webhooks/events`
  shows(t, await viewer.get(log), 'Nothing has been sent to a webhook yet.')
  const [email_id = ''] = await storeEmails(rows, team.id, [['bounced@example.org']])
  await happen(service, { team_id: team.id, email_id, kind: 'bounced' })
  await cli.json(['webhook', 'test', team.id, second.id])
  await cli.json(['webhook', 'test', other.team.id, other.endpoint.id])
  const page = await viewer.get(log)
  shows(t, page, /queued not sent due now webhook\.test – Second .*queued not sent due now email\.bounced/)
  for (const id of [endpoint.id, second.id]) t.match(page.html, `/webhooks/${id}/events/`)
  t.notMatch(page.html, other.endpoint.id)
  const tested = textOf((await viewer.get(`${log}?type=webhook.test&status=queued`)).html)
  t.match(tested, 'webhook.test – Second')
  t.notMatch(tested, 'now email.bounced')
  shows(t, await viewer.get(`${log}?status=failed`), 'No event matches.')
  t.equal((await viewer.get(`${log}?status=eaten`)).status, 400)
  shows(t, await viewer.get(`/teams/${team.id}/webhooks`), 'Event log')
})

t.test('a missing response is described in text', (t) => {
  const none = (response: string) => shortAnswer({ status: null, response })
  t.equal(none('getaddrinfo ENOTFOUND hooks.example.test'), 'the name could not be found (ENOTFOUND)')
  t.equal(none('no response within 15 s'), 'no response within 15 s')
  const response = '<h1>503 Busy</h1>Try <b>again</b><br>later'
  t.equal(shortAnswer({ status: 503, response }), 'Busy · Try again · later')
  t.equal(shortAnswer({ status: 500, response: 'ENOTFOUND' }), 'ENOTFOUND', 'a server’s own words stay')
  t.end()
})

t.test('an owner creates and repairs a webhook on the dashboard', async (t) => {
  const team = await makeTeam(service)
  const receiver = await startReceiver(t)
  const owner = await signedIn(service, { team: team.id, role: 'owner' })
  const at = (...rest: string[]) => ['', 'teams', team.id, 'webhooks', ...rest].join('/')
  await startWorker(t, service)
  t.match((await owner.post(at(), { url: 'http://10.0.0.1/', types: '*' })).status, 400)
  const made = await owner.post(at(), { url: receiver.url, name: 'Billing', types: 'webhook.test' })
  const id = made.location?.split('/').at(-1) ?? ''
  const shown = await owner.get(at(id))
  const [secret = ''] = /whsec_[A-Za-z0-9+/]{43}=/.exec(shown.html.replaceAll('&#x3D;', '=')) ?? []
  t.not(secret, '')
  t.notMatch((await owner.get(at(id))).html, /whsec_/)
  receiver.answer = (_one, response) => void response.writeHead(418).end('no <tea>')
  await owner.post(at(id, 'test'))
  await until('it failed', async () =>
    /418 retried later webhook\.test no/.test(textOf((await owner.get(at(id))).html)),
  )
  const page = await owner.get(at(id))
  shows(
    t,
    page,
    /failing .*1 event waits for the next attempt\. If no attempt succeeds by .*418 retried later webhook\.test no <tea>/,
  )
  receiver.answer = (_one, response) => void response.writeHead(418).end('<html><p>No <b>tea</b></p>')
  await owner.post(at(id, 'test'))
  await until('it shows the text', async () =>
    /webhook\.test No tea/.test(textOf((await owner.get(at(id))).html)),
  )
  receiver.answer = null
  await until('nothing waits', async () => (await cli.json(['webhook', 'show', team.id, id])).backlog === 0)
  const asked = await owner.ask(at(id, 'replay'), { what: 'over' })
  shows(t, asked, 'Send 2 webhook events to Billing again?')
  const [answer = {}] = formsTo(asked, at(id, 'replay'))
  const again = await owner.post(at(id, 'replay'), answer)
  shows(t, await owner.get(again.location ?? ''), '2 webhook events queued to be sent again')
  const last = receiver.received.at(-1)
  if (!last) throw new Error('nothing came')
  t.ok(isVerified(last, secret))
  shows(t, await owner.get(at(id, 'events', last.id)), /"type": "webhook\.test"/)
  await cli.json(['domain', 'add', team.id, 'gone.test'])
  await cli.json(['webhook', 'set', team.id, id, '--domain', 'gone.test'])
  await cli.json(['domain', 'remove', team.id, 'gone.test'])
  const choice = /<option value="gone.test" selected/
  t.match((await owner.get(at(id))).html, choice, 'a removed domain stays chosen: saving it widens nothing')
  const fields = { url: receiver.url, types: 'email.sent', domain: 'gone.test' }
  t.equal((await owner.post(at(id, 'set'), fields)).status, 303, 'and the rest can be saved')
  t.equal((await owner.post(at(id, 'set'), { ...fields, domain: 'other.test' })).status, 404)
  await owner.post(at(id, 'disable'), { confirmed: 'yes' })
  shows(t, await owner.get(at()), /Billing \S+ disabled/)
  await owner.post(at(id, 'enable'))
  await owner.post(at(id, 'remove'), { confirmed: 'yes' })
  shows(t, await owner.get(at()), /No webhooks yet/)
})

t.test('a domain’s webhook works after it is added again', async (t) => {
  const { team, endpoint, receiver } = await begin(t)
  await cli.json(['webhook', 'set', team.id, endpoint.id, '--domain', 'EXAMPLE.com'])
  await startWorker(t, service)
  await cli.json(['domain', 'remove', team.id, 'example.com'])
  await cli.json(['domain', 'add', team.id, 'example.com', '--verified'])
  const body = anEmail({ to: ['a@example.org'] })
  const { body: sent } = await service.call('POST', '/v1/emails', { key: team.key, body })
  await happen(service, { team_id: team.id, email_id: sent.id, kind: 'delivered' })
  await until('it came', () => receiver.received.length === 1)
  t.match(receiver.received[0]?.body, { type: 'email.delivered', data: { email_id: sent.id } })
})

t.test('the sandbox shows received webhooks and whether they are genuine', async (t) => {
  const inbox = await startInbox({ port: 0, sandbox: { messages: () => [], clear: () => {} } })
  t.teardown(() => inbox.close())
  const here = `http://127.0.0.1:${inbox.port}`
  const team = await makeTeam(service)
  t.match(await (await fetch(`${here}/webhooks`)).text(), `with the URL <code>${here}/webhooks</code>`)
  const { id, secret } = await cli.json(['webhook', 'add', team.id, '--url', `${here}/webhooks`])
  await startWorker(t, service)
  await cli.json(['webhook', 'test', team.id, id])
  const came = async () => (await fetch(`${here}/webhooks/messages`)).json()
  await until('it came', async () => ((await came()) as unknown[]).length === 1)
  t.match(await came(), [{ type: 'webhook.test', verified: false }])
  const trusted = (word: string) =>
    fetch(`${here}/webhooks/secrets`, { method: 'POST', body: new URLSearchParams({ secret: word }) })
  t.equal((await trusted('whsec_!')).status, 400)
  t.equal((await trusted(secret)).status, 200)
  t.match(await came(), [{ type: 'webhook.test', verified: true }])
  t.match(await (await fetch(`${here}/webhooks`)).text(), /webhook.test · verified/)
  t.equal((await fetch(`${here}/webhooks`, { method: 'POST', body: 'no JSON' })).status, 400)
})

t.test('erasing a contact deletes waiting webhooks', async (t) => {
  const { team, endpoint, show } = await begin(t)
  const contact = await storeContact(service, team.id, 'eve@example.org')
  await service.call('POST', '/v1/contacts/eve@example.org/unsubscribe', { key: team.key, body: {} })
  for (const to of ['eve@example.org', 'other@example.org']) {
    const [id = ''] = await storeEmails(rows, team.id, [[to]])
    await happen(service, { team_id: team.id, email_id: id, kind: 'delivered' })
  }
  t.equal((await show()).backlog, 3)
  await cli.json(['webhook', 'disable', team.id, endpoint.id])
  await service.call('POST', '/v1/contacts/eve@example.org/resubscribe', { key: team.key, body: {} })
  const failed = async () =>
    (await cli.json(['webhook', 'messages', team.id, endpoint.id, '--status', 'failed'])).length
  t.equal(await failed(), 4, 'what waited, and what happened since')
  await cli.json(['contact', 'erase', team.id, 'eve@example.org'])
  t.equal(await failed(), 1)
  const waiting = await service.database.any(sql.type(object({ body: string().defined() }))`
    select body from webhook_messages where endpoint_id = ${endpoint.id}`)
  t.notMatch(JSON.stringify(waiting), new RegExp(`eve@|${contact}`))
  await service.database.query(sql.unsafe`
    update webhook_messages set status = 'delivered' where endpoint_id = ${endpoint.id}`)
  const inDays = (days: number) => new Date(Date.now() + days * 86_400_000)
  await purgeMessages(service.database, KEPT, inDays(2))
  const left = async () =>
    await service.database.oneFirst(sql.type(object({ count: number().defined() }))`
      select count(*) as count from webhook_messages where endpoint_id = ${endpoint.id}`)
  t.equal(await left(), 1)
  await purgeMessages(service.database, KEPT, inDays(4))
  t.equal(await left(), 0)
})
