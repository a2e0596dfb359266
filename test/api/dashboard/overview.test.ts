/** The alerts on the overview of a team. */
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { claimAsOriginal } from '../../../db/maintenance/restore-guard/restore-guard.sql.ts'
import { deletePauses, storePauses } from '../../../db/queue/pauses.sql.ts'
import { aBroadcast } from '../../support/broadcasts.ts'
import { shows, signedIn, textOf } from '../../support/dashboard.ts'
import { ageEmailRows, insertEmailRows } from '../../support/email-rows.ts'
import { makeTeam, sendEmail, startService, type TestTeam } from '../../support/service.ts'
import t from '../../support/tap.ts'
import { makeTemplate, sendWhatsapp } from '../../support/whatsapp.ts'

const service = await startService(t)
const { database } = service

/** Returns the text of a team's overview for a viewer. */
async function overviewOf({ id }: TestTeam, chart = ''): Promise<string> {
  const viewer = await signedIn(service, { team: id, role: 'viewer' })
  return textOf((await viewer.get(`/teams/${id}${chart}`)).html)
}

const send = (team: TestTeam) => sendEmail(service, team)

/** Makes emails wait for ten minutes, deferred with this response. */
async function hold(ids: readonly string[], words: string): Promise<void> {
  const list = sql.array([...ids], 'uuid')
  await ageEmailRows(service, sql.fragment`id = any(${list})`, '10 minutes')
  await database.query(sql.unsafe`
    insert into email_events (team_id, email_id, event_key, kind, occurred_at, detail)
    select team_id, id, uuid_send(gen_random_uuid()), 'deferred', now(), ${words} from emails where id = any(${list})`)
}

t.test('counts long waits on both channels, with the usual response', async (t) => {
  const [team, other] = [await makeTeam(service), await makeTeam(service, { domain: 'other.test' })]
  t.match(await overviewOf(team), 'Nothing needs attention yet.')
  const [first = '', second = '', third = ''] = [await send(team), await send(team), await send(team)]
  await send(team)
  await hold([first, second], '451 4.7.1 Greylisted')
  await hold([third], '452 4.2.2 Full')
  await sendWhatsapp(service, team, (await makeTemplate(service, team.id)).id)
  await database.query(sql.unsafe`
    update whatsapp_messages set created_at = created_at - interval '10 minutes'`)
  const page = await overviewOf(team)
  t.match(page, '3 emails waiting for longer than 5 minutes. 451 4.7.1 Greylisted Show emails')
  t.match(page, '1 WhatsApp message waiting for longer than 5 minutes Show WhatsApp messages')
  t.notMatch(await overviewOf(other), 'waiting for longer')
})

t.test('the alerts about failed and waiting emails lead to just these', async (t) => {
  const team = await makeTeam(service)
  const [failed = '', late = ''] = [await send(team), await send(team)]
  await hold([failed, late], '451 4.7.1 Greylisted')
  await database.query(sql.unsafe`
    update email_events set kind = 'gave_up', detail = '550 5.7.1 Blocked' where email_id = ${failed}`)
  const owner = await signedIn(service, { team: team.id, role: 'owner' })
  const { html } = await owner.get(`/teams/${team.id}`)
  t.match(textOf(html), '1 email failed, with no attempts left')
  t.match(textOf(html), '1 email waiting for longer than 5 minutes')
  const listed = async (status: string) => {
    const path = `/teams/${team.id}/emails?kind=all&status=${status}`
    t.match(html.replaceAll('&#x3D;', '='), path.replace('&', '&amp;'))
    return [...(await owner.get(path)).html.matchAll(/\/emails\/([0-9a-f-]{36})\?/g)].map(([, id]) => id)
  }
  t.strictSame([...new Set(await listed('failed'))], [failed])
  t.strictSame([...new Set(await listed('queued'))], [late])
})

t.test('the overview explains why a test team sends nothing', async (t) => {
  const team = await makeTeam(service, { domain: 'trial-only.test', test: true })
  t.match(await overviewOf(team), 'Nothing needs attention. This is a test team, so nothing is delivered.')
  t.notMatch(await overviewOf(team), 'Everything is going out')
})

t.test('no alert for emails of paused or rate-limited broadcasts', async (t) => {
  const team = await makeTeam(service)
  const paced = await aBroadcast(service, team, { rate_per_minute: 10 })
  const paused = await aBroadcast(service, team)
  const free = await aBroadcast(service, team)
  const waits = [
    ...(await paced.emails('one@example.net', 'two@example.net')),
    ...(await paused.emails('three@example.net', 'four@example.net')),
  ]
  await paused.become('paused')
  await ageEmailRows(service, sql.fragment`id = any(${sql.array(waits, 'uuid')})`, '10 minutes')
  t.match(await overviewOf(team), 'Nothing needs attention. Everything is going out.')
  await hold(waits.slice(1, 3), '451 4.7.1 Greylisted')
  const refused = await overviewOf(team)
  t.match(refused, '1 email waiting for longer than 5 minutes. 451 4.7.1 Greylisted', 'it was refused')
  await hold(await free.emails('five@example.net'), '451 4.7.1 Greylisted')
  t.match(await overviewOf(team), '2 emails waiting for longer than 5 minutes')
})

t.test('shows "at least" when the backlog exceeds the count limit', async (t) => {
  const team = await makeTeam(service)
  const rows = sql.fragment`
    select ${team.id} as team_id, gen_random_uuid() as id, ${team.id} as domain_id, 'a@example.com' as from_address,
      '{}'::text[] as to_emails, '' as subject, '' as html, '[]'::json as tags, 'queued' as status,
      now() - interval '1 hour' as created_at, '' as reply_to
    from generate_series(1, 1001)`
  await insertEmailRows(service, rows)
  t.match(await overviewOf(team), 'At least 1,000 emails waiting for longer than 5 minutes')
})

t.test('shows a paused queue to the team and to operators', async (t) => {
  const team = await makeTeam(service)
  const id = await send(team)
  const viewer = await signedIn(service, { team: team.id, role: 'viewer' })
  const operator = await signedIn(service, { operator: true })
  const [message, first] = [`/teams/${team.id}/emails/${id}`, '/operator']
  await storePauses(database, ['deliver-email'], { paused_by: 'cli' }, new Date())
  t.match(await overviewOf(team), 'Email is paused by an operator')
  t.notMatch(await overviewOf(team), 'Show queues', 'only operators can see them')
  shows(t, await operator.get(`/teams/${team.id}`), /Email is paused by an operator\. .* Show queues/)
  const waits = await viewer.get(message)
  shows(t, waits, 'Its queue is paused by an operator')
  t.notMatch(waits.html, 'Waiting for a worker', 'one reason, the most specific')
  shows(t, await operator.get(first), 'The queue Emails is paused by an operator')
  await deletePauses(database, ['deliver-email'])
  await storePauses(database, ['deliver-broadcast'], { paused_by: 'cli' }, new Date())
  t.match(await overviewOf(team), 'Broadcast email is paused by an operator')
  t.notMatch(textOf((await viewer.get(message)).html), 'paused by an operator')
  await deletePauses(database, ['deliver-broadcast'])
  for (const page of [await overviewOf(team), await viewer.get(message), await operator.get(first)])
    t.notMatch(typeof page === 'string' ? page : textOf(page.html), 'paused by an operator')
})

t.test('everyone sees a restored copy, and one click resumes everything', async (t) => {
  const team = await makeTeam(service)
  const id = await send(team)
  const viewer = await signedIn(service, { team: team.id, role: 'viewer' })
  const operator = await signedIn(service, { operator: true })
  const [message, first, queues] = [`/teams/${team.id}/emails/${id}`, '/operator', '/operator/queues']
  const words = 'Nothing goes out, because the database was restored or copied'
  await claimAsOriginal(database, uuidv7())
  t.notMatch(await overviewOf(team), words)
  await database.query(sql.unsafe`update database_home set place = 'elsewhere'`)
  t.match(await overviewOf(team), words)
  shows(t, await viewer.get(message), 'Its queue is paused, because the database was restored or copied')
  shows(t, await operator.get(first), words)
  shows(t, await operator.get(queues), /Resume all .*Webhooks, paused restored/)
  const asked = await operator.ask('/operator/queues/restored')
  t.match(asked.html, /<a href="\/dashboard\/operator\/queues">Go back</, 'the way back leads to the queues')
  const pressed = await operator.post('/operator/queues/restored')
  t.equal(pressed.status, 303)
  const pages = [await viewer.get(`/teams/${team.id}`), await operator.get(first), await operator.get(queues)]
  for (const page of pages) t.notMatch(textOf(page.html), /another one than it was|Resume all|restored/)
  shows(t, await operator.get('/operator/audit'), /Resumed a queue \S+ restored/)
})

t.test('the alert about bounces names the limit of mailbox providers', async (t) => {
  const team = await makeTeam(service)
  await database.query(sql.unsafe`
    insert into daily_figures (team_id, channel, day, status, count)
    select ${team.id}, 'email', (now() at time zone 'UTC')::date, status, count
    from (values ('delivered', 90), ('bounced', 10)) as f (status, count)`)
  const page = await overviewOf(team)
  t.match(
    page,
    /10\.0 % of the last 30 days’ emails bounced\. Mailbox providers may .* above 5\.0 %\. Show emails/,
  )
})

t.test('only shows broadcasts that were paused automatically, with the reason', async (t) => {
  const team = await makeTeam(service, { domain: 'stopped.test' })
  const become = async (reason: string | null) => {
    const { id } = await aBroadcast(service, team)
    await database.query(sql.unsafe`
      update broadcasts set name = ${reason ?? 'by hand'}, state = 'paused', state_reason = ${reason} where id = ${id}`)
  }
  await become(null)
  const calm = await overviewOf(team)
  t.match(calm, 'Nothing needs attention')
  t.match(
    calm,
    /Broadcasts running and next Name Status Progress Sent Start by hand paused 0 of 2 /,
    'its progress',
  )
  for (const reason of ['overdue', 'quota_exceeded', 'restored']) await become(reason)
  const page = await overviewOf(team)
  t.match(
    page,
    /Broadcasts running and next .*restored auto-paused .*by hand paused/,
    'what needs action first',
  )
  t.match(page, '“overdue” was paused automatically. It would have started more than an hour late')
  t.match(page, '“quota_exceeded” was paused automatically. The quota is used up')
  t.match(page, '“restored” was paused automatically. The database was restored from a backup')
  t.notMatch(page, '“by hand”')
  t.notMatch(page, 'Resume it', 'a viewer can’t')
  const operator = await signedIn(service, { operator: true })
  const ofOperator = textOf((await operator.get(`/operator/teams/${team.id}`)).html)
  t.match(ofOperator, /“overdue” was paused automatically\. .* The last 7 days .* Usage .* Members /)
  const editor = await signedIn(service, { team: team.id, role: 'editor' })
  t.match(textOf((await editor.get(`/teams/${team.id}`)).html), 'Resume it to send it now.')
  await become('complaints')
  t.match(
    await overviewOf(team),
    /4 broadcasts were paused automatically .*“complaints”.* Too many recipients reported it as spam\./,
  )
  const other = await makeTeam(service, { domain: 'stopped-other.test' })
  t.notMatch(await overviewOf(other), 'paused')
})

t.test('alerts are ordered by urgency', async (t) => {
  const team = await makeTeam(service)
  const owner = await signedIn(service, { team: team.id, role: 'owner' })
  await owner.post(`/teams/${team.id}/domains`, { name: 'pending.example.com' })
  for (const name of ['Broken', 'Failing'])
    await owner.post(`/teams/${team.id}/webhooks`, { name, url: 'https://hooks.example.com', types: '*' })
  const { id } = await aBroadcast(service, team)
  await hold([await send(team)], '451 4.7.1 Greylisted')
  for (const change of [
    sql.unsafe`update broadcasts set state = 'paused', state_reason = 'overdue' where id = ${id}`,
    sql.unsafe`
      update webhook_endpoints set state = 'disabled', state_reason = 'it returned 410', disabled_at = now()
      where team_id = ${team.id} and name = 'Broken'`,
    sql.unsafe`
      update webhook_endpoints set failing_since = now() where team_id = ${team.id} and name = 'Failing'`,
    sql.unsafe`update domains set missing_since = now(), failing_since = now() where team_id = ${team.id} and name = 'example.com'`,
  ])
    await database.query(change)
  await storePauses(database, ['deliver-email'], { paused_by: 'cli' }, new Date())
  const { html } = await owner.get(`/teams/${team.id}`)
  await deletePauses(database, ['deliver-email'])
  const words = [
    '“News” was paused automatically',
    'The webhook Broken was disabled',
    'The DKIM record of example.com has been missing or different',
    'Email is paused by an operator',
    '1 email waiting for longer than 5 minutes',
    'All attempts of the webhook Failing have failed for',
    'The domain pending.example.com is not verified yet',
  ]
  const page = textOf(html)
  const inOrder = [...words].sort((one, other) => page.indexOf(one) - page.indexOf(other))
  t.strictSame(inOrder, words)
  for (const each of words) t.match(page, each)
  t.match(page, /DKIM record.* 4 more Email is paused/, 'alerts beyond the third are collapsed')
})

t.test('many alerts of one kind are collapsed into one', async (t) => {
  const team = await makeTeam(service)
  const owner = await signedIn(service, { team: team.id, role: 'owner' })
  const add = (n: number) => owner.post(`/teams/${team.id}/domains`, { name: `d${n}.fold.test` })
  await add(1)
  t.match(await overviewOf(team), 'The domain d1.fold.test is not verified yet Show DNS records')
  for (const n of [2, 3, 4]) await add(n)
  t.match(await overviewOf(team), /4 domains are not verified yet The domain d\d\.fold\.test/)
})
