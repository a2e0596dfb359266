/**
 * Notices to owners about a webhook or broadcast that stopped automatically: by email, and on the overview
 * page.
 */
import { sql } from 'slonik'
import { array, object, string } from 'yup'
import { adminCli } from '../../support/admin.ts'
import { aBroadcast } from '../../support/broadcasts.ts'
import { shows, signedIn } from '../../support/dashboard.ts'
import { makeTeam, startService } from '../../support/service.ts'
import { startSmtpSink } from '../../support/smtp-sink.ts'
import t from '../../support/tap.ts'
import { beginWebhooks } from '../../support/webhooks.ts'
import { startWorker, until } from '../../support/worker.ts'

const SITE = 'https://mail.example.com'
const service = await startService(t)
const cli = adminCli({ DATABASE_URL: service.url, WEBHOOK_ALLOW: '127.0.0.0/8' })

const storedRow = object({
  team_id: string().defined(),
  to_emails: array(string().defined()).defined(),
  subject: string().defined(),
  html: string().defined(),
  body_text: string().defined(),
})
const mails = () =>
  service.database.any(sql.type(storedRow)`
    select team_id, to_emails, subject, html, body_text from emails order by to_emails::text`)

t.test('owners get one email about an automatically disabled webhook', async (t) => {
  const operators = await makeTeam(service)
  const sink = await startSmtpSink(t)
  const notices = { from: 'Heliograph <login@example.com>', operator: null, site: SITE }
  await startWorker(t, service, { smtp_url: sink.url, notices })
  const { team, receiver, endpoint, show } = await beginWebhooks(t, { service, cli })
  await cli.json(['webhook', 'set', team.id, endpoint.id, '--url', `${receiver.url}?token=private`])
  await service.database.query(sql.unsafe`delete from domains where team_id = ${team.id}`)
  const owner = await signedIn(service, { team: team.id, role: 'owner', email: 'a-owner@example.org' })
  await signedIn(service, { team: team.id, role: 'owner', email: 'b-owner@example.org' })
  await signedIn(service, { team: team.id, role: 'editor', email: 'c-editor@example.org' })
  receiver.answer = (_one, response) => void response.writeHead(410).end('private words')
  await cli.json(['webhook', 'test', team.id, endpoint.id])
  await until('it is disabled', async () => (await show()).state === 'disabled')
  await until('the owners have mail', () => sink.messages().length === 2)
  for (const { raw } of sink.messages()) t.match(raw.toString(), /^Auto-Submitted: auto-generated\r$/m)
  const stored = await mails()
  t.strictSame(
    stored.map(({ team_id, to_emails: [to], subject }) => [team_id, to, subject]),
    ['a-owner@example.org', 'b-owner@example.org'].map((to) => [
      operators.id,
      to,
      'The webhook “127.0.0.1” was disabled',
    ]),
  )
  const [{ html, body_text } = { html: '', body_text: '' }] = stored
  for (const words of [html, body_text]) {
    t.match(words, 'it returned 410')
    t.match(words, `${SITE}/dashboard/teams/${team.id}/webhooks/${endpoint.id}`)
    t.match(words, 'because you are an owner of')
    t.notMatch(words, /private|whsec_|\?token/)
  }
  t.notMatch(
    (
      await (
        await signedIn(service, { team: operators.id, role: 'owner' })
      ).get(`/teams/${operators.id}/emails`)
    ).html,
    'was disabled',
  )
  shows(t, await owner.get(`/teams/${team.id}`), /The webhook 127\.0\.0\.1 was disabled.*it returned 410/)
})

t.test('notifies owners of failing webhooks, not of manually disabled ones', async (t) => {
  await startWorker(t, service, { notices: { from: 'login@example.com', operator: null, site: null } })
  const { team, receiver, endpoint, show } = await beginWebhooks(t, { service, cli })
  const before = (await mails()).length
  const owner = await signedIn(service, { team: team.id, role: 'owner' })
  receiver.answer = (_one, response) => void response.writeHead(500).end()
  await cli.json(['webhook', 'test', team.id, endpoint.id])
  await until('it fails', async () => (await show()).failing_since !== null)
  shows(
    t,
    await owner.get(`/teams/${team.id}`),
    /All attempts of the webhook 127\.0\.0\.1 have failed for (under 1 s|\d+ seconds?) Show webhook/,
  )
  const { html } = await owner.get(`/teams/${team.id}/webhooks/${endpoint.id}`)
  t.match(html, / have failed since <time datetime="20/, 'a reader’s own time')
  await owner.post(`/teams/${team.id}/webhooks/${endpoint.id}/disable`, { confirmed: 'yes' })
  shows(t, await owner.get(`/teams/${team.id}`), 'Nothing needs attention')
  const jobs = await service.database.any(sql.unsafe`
    select from pgboss.job where name = 'mail-owners' and data ->> 'team_id' = ${team.id}`)
  t.equal(jobs.length, 0)
  t.equal((await mails()).length, before)
})

t.test('disables a webhook without DASHBOARD_FROM, and sends nothing', async (t) => {
  const { team, receiver, endpoint, show } = await beginWebhooks(t, { service, cli })
  await startWorker(t, service)
  await signedIn(service, { team: team.id, role: 'owner' })
  const before = (await mails()).length
  receiver.answer = (_one, response) => void response.writeHead(410).end()
  await cli.json(['webhook', 'test', team.id, endpoint.id])
  await until('it is disabled', async () => (await show()).state === 'disabled')
  await until('nothing is left to do', async () => {
    const { rows } = await service.database.query(sql.unsafe`
      select from pgboss.job where name = 'mail-owners' and data ->> 'team_id' = ${team.id} and state < 'completed'`)
    return rows.length === 0
  })
  t.equal((await mails()).length, before)
})

t.test('sends owners one email about an automatically paused broadcast', async (t) => {
  const sink = await startSmtpSink(t)
  await makeTeam(service, { domain: 'notices.test' })
  const notices = { from: 'Heliograph <login@notices.test>', operator: null, site: SITE }
  const team = await makeTeam(service, { domain: 'braked.test' })
  await signedIn(service, { team: team.id, role: 'owner', email: 'd-owner@example.org' })
  await signedIn(service, { team: team.id, role: 'editor', email: 'e-editor@example.org' })
  const broadcast = await aBroadcast(service, team)
  await broadcast.moved({ complained: 3, delivered: 1_758 })
  await startWorker(t, service, { smtp_url: sink.url, notices })
  await broadcast.walk()
  await until('the owner has mail', () => sink.messages().length > 0)
  t.same(sink.recipients(), [['d-owner@example.org']])
  const stored = (await mails()).filter(
    ({ subject }) => subject === 'The broadcast “News” was paused automatically',
  )
  t.equal(stored.length, 1)
  t.match(
    stored[0]?.body_text,
    `The broadcast “News” of A team was paused automatically. Too many recipients reported it as spam: 0.17 % of 1,761 emails, limit 0.10 %.`,
  )
  t.match(stored[0]?.html, `${SITE}/dashboard/teams/${team.id}/broadcasts/${broadcast.id}`)
})
