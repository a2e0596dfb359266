/** Schedules, pauses and cancels broadcasts on the dashboard, with the actions of each state. */
import { sql } from 'slonik'
import { asTextTiles, contactsTile } from '../../../api/dashboard/pages/broadcast-ahead.ts'
import { auditEntries } from '../../../db/accounts/audit/audit.sql.ts'
import { startBroadcastPages } from '../../support/broadcast-pages.ts'
import { aBroadcast } from '../../support/broadcasts.ts'
import { mainActs, shows, signedIn, textOf } from '../../support/dashboard.ts'
import { formTo } from '../../support/forms.ts'
import { makeTeam } from '../../support/service.ts'
import { startSmtpSink } from '../../support/smtp-sink.ts'
import t from '../../support/tap.ts'
import { startWorker, until } from '../../support/worker.ts'

const pages = await startBroadcastPages(t)
const { service, call, database, team, editor, viewer, at, after, topicOf, contact, templateOf } = pages
const { write, draft } = pages

t.test('a question about a broadcast of another state has nothing to confirm', async (t) => {
  const broadcast = await aBroadcast(service, team)
  const path = at(`broadcasts/${broadcast.id}`)
  for (const [state, verb, after] of [
    ['sending', 'pause', 'paused'],
    ['paused', 'resume', 'sending'],
    ['sending', 'cancel', 'cancelled'],
    ['sent', 'again', 'sending'],
    ['draft', 'delete', 'sending'],
    ['draft', 'send', 'scheduled'],
  ] as const) {
    await broadcast.become(state)
    const form = verb === 'send' ? formTo((await editor.get(path)).html, `${path}/send`) : {}
    const { location, status } = await editor.post(`${path}/${verb}`, { ...form, confirmed: '' })
    t.equal(status, 303, verb)
    t.notMatch(textOf((await editor.get(location ?? '')).html), 'Nothing left to confirm', verb)
    await broadcast.become(after)
    const late = await editor.get(location ?? '')
    shows(t, late, /Nothing left to confirm The broadcast is .*Go back/)
    t.match(late.html, `href="/dashboard${path}${verb === 'again' ? '/again' : ''}">Go back</a>`, verb)
  }
  await broadcast.become('cancelled')
})

t.test('pauses, resumes and cancels a broadcast, with the remaining contacts', async (t) => {
  const broadcast = await aBroadcast(service, team)
  await broadcast.emails('one@example.net', 'two@example.net')
  const path = at(`broadcasts/${broadcast.id}`)
  shows(t, await editor.ask(`${path}/pause`), 'Pause “News”')
  shows(t, await editor.ask(`${path}/cancel`), 'Keep broadcast')
  const paused = await after(await editor.post(`${path}/pause`))
  shows(t, paused, /News is paused.*paused Paused by editor-\S+, just now, after 0 of 2 contacts/)
  const asked = await editor.ask(`${path}/resume`)
  shows(t, asked, /Resume “News” for [^?]*\? So far: 0 emails sent, 0 % bounced, 0 % reported as spam\./)
  shows(t, await after(await editor.post(`${path}/resume`)), /News is being sent.*sending Being sent/)
  shows(t, await after(await editor.post(`${path}/cancel`)), /News is cancelled.*cancelled Cancelled/)
  const late = await editor.post(`${path}/pause`)
  t.equal(late.status, 409)
  shows(t, late, /The broadcast is cancelled/i)
})

t.test('uses the singular for one contact and one value', async (t) => {
  const broadcast = await aBroadcast(service, team)
  await broadcast.emails('single@example.net')
  await database.query(sql.unsafe`update broadcasts set audience = 1 where id = ${broadcast.id}`)
  const path = at(`broadcasts/${broadcast.id}`)
  shows(t, await editor.ask(`${path}/pause`), 'before it is sent to the 1 remaining contact?')
  const [tile] = asTextTiles([{ property: 'spent', text: 1, all: 1 }])
  t.equal(tile?.detail, 'of 1 value isn’t a number')
  await editor.post(`${path}/cancel`)
})

t.test('shows who paused or resumed a broadcast, and when', async (t) => {
  const topic = await topicOf('History')
  const template_id = await templateOf('<p>History</p><a href="{{unsubscribe_url}}">off</a>')
  await contact('history@example.org', topic)
  const later = new Date(Date.now() + 5 * 86_400_000).toISOString().slice(0, 16)
  const planned = await draft({ template_id, topic_ids: topic, subject: 'Hi', send_at: later })
  await after(await editor.press(planned, `${planned}/send`))
  await after(await editor.press(planned, `${planned}/unschedule`))
  const who = editor.email.replaceAll('.', '\\.')
  shows(
    t,
    await viewer.get(planned),
    new RegExp(
      `What happened Made a draft again .* By ${who}\\. Scheduled .* By ${who}\\. Created .* By ${who}\\.`,
    ),
  )
  const broadcast = await aBroadcast(service, team)
  const path = at(`broadcasts/${broadcast.id}`)
  const byKey = (verb: string) => call('POST', `/v1/broadcasts/${broadcast.id}/${verb}`, { key: team.key })
  await editor.post(`${path}/pause`)
  shows(t, await viewer.get(path), new RegExp(`paused Paused by ${who}, just now, after 0 of 2 contacts`))
  await editor.post(`${path}/resume`)
  const resumed = new RegExp(`Resumed .* By ${who}\\. Paused .* By ${who}\\. Started .* Through the API\\.`)
  shows(t, await viewer.get(path), resumed)
  await byKey('pause')
  shows(
    t,
    await viewer.get(path),
    /Paused through the API, just now, after .* Paused .* Through the API\. Resumed/,
  )
  await database.query(sql.unsafe`
    update broadcasts set state_reason = 'bounces' where id = ${broadcast.id}`)
  shows(t, await viewer.get(path), /Paused automatically, just now, after .*Auto-paused (?!.*Automatically)/)
  await byKey('cancel')
  shows(t, await viewer.get(path), /Cancelled through the API, just now, after /)
  const other = await aBroadcast(service, team)
  await editor.post(at(`broadcasts/${other.id}/cancel`))
  const cancelled = await viewer.get(at(`broadcasts/${other.id}`))
  shows(t, cancelled, new RegExp(`Cancelled by ${who}, just now, after `))
  t.match(cancelled.html, '<li class="plain"><strong>Cancelled</strong>', 'nothing went wrong')
  t.equal(textOf(cancelled.html).match(/By editor/g)?.length, 1, 'nothing of another broadcast')
})

t.test('each state has one main action, and a scheduled one shows a forecast', async (t) => {
  const broadcast = await aBroadcast(service, team)
  await broadcast.emails('main@example.net')
  const path = at(`broadcasts/${broadcast.id}`)
  for (const [state, act] of [
    ['sending', 'Pause broadcast'],
    ['paused', 'Resume broadcast'],
    ['scheduled', 'Send a test'],
    ['sent', 'Send to the rest'],
    ['cancelled', 'Duplicate broadcast'],
    ['sent to all', 'Duplicate broadcast'],
  ] as const) {
    await broadcast.become(state.replace(' to all', ''))
    if (state === 'sent to all') {
      await broadcast.moved({ queued: -1, sent: 1 })
      await database.query(sql.unsafe`update broadcasts set audience = 1 where id = ${broadcast.id}`)
    }
    t.strictSame(mainActs(await editor.get(path)), [act], state)
    t.strictSame(mainActs(await viewer.get(path)), [], `${state}, for a viewer`)
    if (state === 'cancelled')
      t.match(
        (await editor.get(path)).html,
        /<a class="button quiet" [^>]*>Send to the rest</,
        'the second button',
      )
  }
  const topic = await topicOf('To come')
  for (const [nth, name] of ['Ana', 'Ben', ''].entries())
    await contact(`come${nth}@example.org`, topic, name === '' ? {} : { name })
  const template_id = await templateOf('<p>To come</p><a href="{{unsubscribe_url}}">off</a>')
  const tomorrow = new Date(Date.now() + 86_500_000).toISOString().slice(0, 16)
  const planned = await draft({ template_id, topic_ids: topic, send_at: tomorrow, rate_per_minute: '1' })
  t.strictSame(mainActs(await editor.get(planned)), ['Schedule'])
  await after(await editor.press(planned, `${planned}/send`))
  // The version that was shown is sent, so later changes of the template don't matter.
  await editor.press(at(`templates/${template_id}`), at(`templates/${template_id}/draft`), {
    html: '<p>{{town}}</p>',
  })
  await editor.press(at(`templates/${template_id}/changes`), at(`templates/${template_id}/publish`))
  const page = await viewer.get(planned)
  shows(
    t,
    page,
    /Starts in 1 day \(\w{3}, [^)]*UTC\)\. Stop refreshing Forecast Contacts 3 match now\. The audience is chosen when it starts\. Missing a variable 1 Skipped: no value for name Takes about 3 minutes at 1 email a minute /,
  )
  shows(t, page, 'Rate limit at most 1 email a minute')
  t.notMatch(textOf(page.html), /Outcome|Before it can start/)
  await database.query(sql.unsafe`
    update contacts set status = 'unsubscribed' where team_id = ${team.id} and email = 'come1@example.org'`)
  shows(
    t,
    await viewer.get(planned),
    'Contacts 2 match now, of 3 in the topic. 1 is unsubscribed or suppressed. The audience is chosen when it starts.',
  )
  await database.query(sql.unsafe`
    update contacts set status = 'subscribed' where team_id = ${team.id} and email = 'come1@example.org'`)
  await call('DELETE', '/v1/contacts/come0@example.org', { key: team.key })
  await editor.post(at(`topics/${topic}/rename`), { name: 'Came' })
  await call('DELETE', '/v1/contacts/come1@example.org', { key: team.key })
  const skipping = await editor.get(planned)
  shows(
    t,
    skipping,
    /Scheduled for [^.]*UTC\. .*Before it can start Every contact would be skipped\. 1 contact matches now\. /,
  )
  const text = textOf(skipping.html)
  t.notMatch(text, /No contact has the property|Missing a variable|Forecast|Takes about/, 'shown once')
  t.strictSame(mainActs(skipping), ['Back to draft'])
  shows(t, skipping, /Preview for .* Starts \d+ \w+ \d+, [\d:]+ UTC in 1 day Template/)
  await call('DELETE', '/v1/contacts/come2@example.org', { key: team.key })
  shows(t, await viewer.get(planned), /Before it can start The audience is empty\./)
  await after(await editor.post(`${planned}/cancel`))
})

t.test('a broadcast cancelled before its start shows no start time', async (t) => {
  const broadcast = await aBroadcast(service, team)
  await database.query(sql.unsafe`
    update broadcasts set name = 'Advent', state = 'scheduled', started_at = null, audience = null,
      send_at = now() + interval '80 minutes' where id = ${broadcast.id}`)
  const path = at(`broadcasts/${broadcast.id}`)
  shows(t, await editor.get(at('broadcasts')), /Advent scheduled [^%]* in 1 hour/)
  shows(t, await editor.get(path), /Scheduled for \w{3}, .* UTC\. If nothing changes by then, it is paused\./)
  await after(await editor.post(`${path}/cancel`))
  shows(t, await editor.get(at('broadcasts')), /Advent cancelled – – – – not started/)
  t.notMatch(textOf((await editor.get(path)).html), /begin|Scheduled for/i)
})

t.test('a scheduled broadcast becomes a draft again and is sent', async (t) => {
  const sink = await startSmtpSink(t)
  const topic = await topicOf('Unscheduled')
  const template_id = await templateOf('<p>Hi</p><a href="{{unsubscribe_url}}">off</a>')
  await contact('scheduled@example.org', topic)
  const later = new Date(Date.now() + 5 * 86_400_000).toISOString().slice(0, 16)
  const path = await draft({ template_id, topic_ids: topic, subject: 'Hi', send_at: later })
  shows(t, await after(await editor.press(path, `${path}/send`)), /Spring is scheduled.*scheduled Starts in/)
  await startWorker(t, service, { smtp_url: sink.url })
  const isEarly = sql.unsafe`
    select state::text from pgboss.job where name = 'expand-broadcast' and start_after > now() + interval '1 hour'`
  await until('its job waits for its time', async () => (await database.any(isEarly)).length === 1)
  const unscheduled = await after(await editor.press(path, `${path}/unschedule`))
  shows(t, unscheduled, /Spring is a draft again.*draft Draft:/)
  t.equal((await editor.post(`${path}/unschedule`)).status, 409)
  await after(await editor.press(path, `${path}/send`))
  t.match((await editor.get(path)).html, /unschedule\?next&#x3D;when"[\s\S]*?>Change the start</)
  const changing = await editor.post(`${path}/unschedule?next=when`)
  t.equal(changing.location, `${path}/edit?step=when`)
  shows(t, await after(changing), /Spring is a draft again\. Set its start, then schedule it\./)
  const fields = { name: 'Spring', template_id, from: 'hello@example.com', subject: 'Hi', topic_ids: topic }
  await write(path, { ...fields, send_at: '' })
  shows(t, await after(await editor.press(path, `${path}/send`)), /Spring is being sent/)
  await until('it is sent', () => sink.messages().length === 1)
  const copied = await after(await editor.post(`${path}/duplicate`))
  shows(
    t,
    copied,
    /The draft Copy of Spring was created\..*draft Draft:.*Preview for .*hello@example\.com Hi .*Topics Unscheduled/,
  )
  const actions = (await auditEntries(database, { team: team.id, limit: 10 })).map(({ action }) => action)
  t.ok(actions.includes('broadcast.unschedule'))
})

t.test('filters by state, and tells manual and automatic pauses apart', async (t) => {
  const own = await makeTeam(service)
  const reader = await signedIn(service, { team: own.id, role: 'viewer' })
  const list = `/teams/${own.id}/broadcasts`
  t.notMatch((await reader.get(list)).html, 'state&#x3D;draft', 'no filter for an empty list')
  const [manual, automatic, sent] = [
    await aBroadcast(service, own),
    await aBroadcast(service, own),
    await aBroadcast(service, own),
  ]
  const name = (id: string, words: string) =>
    database.query(sql.unsafe`update broadcasts set name = ${words} where id = ${id}`)
  await Promise.all([name(manual.id, 'By hand'), name(automatic.id, 'Stopped'), name(sent.id, 'Done')])
  await database.query(sql.unsafe`
    update broadcasts set state = 'paused', state_reason = case when id = ${automatic.id} then 'bounces' end
    where id = any(${sql.array([manual.id, automatic.id], 'uuid')})`)
  await sent.emails('a@example.net', 'b@example.net', 'c@example.net', 'd@example.net')
  await sent.moved({ queued: -4, opened: 2, clicked: 1, delivered: 1 })
  await sent.become('sent')
  const opened = '4 of 2 75\\.0 %'
  const all = await reader.get(list)
  shows(t, all, new RegExp(`Done sent ${opened} 0 % 0 % .*Stopped auto-paused .* – – .*By hand paused`))
  const paused = await reader.get(`${list}?state=paused`)
  shows(t, paused, /Stopped.*By hand/)
  t.notMatch(textOf(paused.html), 'Done')
  await sent.moved({ bounced: 196 })
  t.match((await reader.get(list)).html, /class="tag bad">98\.0\s%</, 'too many bounced')
  shows(t, await reader.get(`${list}?state=draft`), 'No broadcast matches.')
  t.equal((await reader.get(`${list}?state=gone`)).status, 400)
})

t.test('a list without rows offers no file', async (t) => {
  const broadcast = await aBroadcast(service, team)
  const path = at(`broadcasts/${broadcast.id}`)
  for (const list of ['people', 'skips'])
    t.notMatch((await viewer.get(`${path}/${list}`)).html, 'Export as CSV', list)
  await broadcast.emails('listed@example.net')
  t.match((await viewer.get(`${path}/people`)).html, 'Export as CSV')
  await broadcast.become('cancelled')
})

t.test('an audience without a count is not called large', (t) => {
  t.match(contactsTile(null), { value: 'not counted', detail: /too long/ })
  t.match(contactsTile(0, 'none'), { value: '0', detail: 'none' })
  t.end()
})
