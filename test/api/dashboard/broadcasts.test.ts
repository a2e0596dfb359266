/** Broadcasts on the dashboard: start, stats, recipients, pause and cancel. */
import { sql } from 'slonik'
import { asTextTiles } from '../../../api/dashboard/pages/broadcast-ahead.ts'
import { auditEntries } from '../../../db/accounts/audit/audit.sql.ts'
import { deleteEmails } from '../../../db/messages/emails/delete.sql.ts'
import { keepStats } from '../../../db/stats/daily/broadcasts.sql.ts'
import { startBroadcastPages } from '../../support/broadcast-pages.ts'
import { aBroadcast } from '../../support/broadcasts.ts'
import { formsTo, mainActs, shows, signedIn, textOf } from '../../support/dashboard.ts'
import { formTo } from '../../support/forms.ts'
import { makeTeam } from '../../support/service.ts'
import { startSmtpSink } from '../../support/smtp-sink.ts'
import t from '../../support/tap.ts'
import { startWorker, until } from '../../support/worker.ts'

const {
  service,
  call,
  cli,
  database,
  team,
  editor,
  viewer,
  at,
  after,
  topicOf,
  contact,
  templateOf,
  write,
  draft,
} = await startBroadcastPages(t)

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

t.test('empty lists of a broadcast name deleted emails and skips', async (t) => {
  const own = await makeTeam(service)
  const reader = await signedIn(service, { team: own.id, role: 'editor' })
  const broadcast = await aBroadcast(service, own)
  const path = `/teams/${own.id}/broadcasts/${broadcast.id}`
  const people = `${path}/people`
  const all = `/teams/${own.id}/emails/all?broadcast=${broadcast.id}`
  shows(t, await reader.get(people), 'No recipients yet.')
  shows(t, await reader.get(`${path}/skips`), 'No contacts were skipped.')
  shows(t, await reader.get(all), 'No emails match, so there is nothing to do.')
  await broadcast.emails('old@example.net')
  await database.query(sql.unsafe`update email_states set status = 'bounced' where team_id = ${own.id}`)
  shows(t, await reader.get(people), /bounced old@example\.net/)
  await database.transaction(async (tx) => {
    const all = sql.fragment`select id from email_states where team_id = ${own.id}`
    await keepStats(tx, own.id, await deleteEmails(tx, own.id, all))
  })
  const words = 'These emails have been deleted. Their counts are kept.'
  shows(t, await reader.get(people), words)
  shows(t, await reader.get(`${people}?status=bounced`), words)
  shows(t, await reader.get(`${people}?status=clicked`), 'No recipient matches.')
  const bulk = await reader.get(all)
  shows(t, bulk, words)
  t.notMatch(textOf(bulk.html), '0 emails')
  shows(t, await reader.get(`${all}&status=queued`), /0 emails, .* No emails match/)
  await broadcast.moved({ skipped: 4 })
  shows(t, await reader.get(`${path}/skips`), 'These entries have been deleted. Their count is kept.')
})

t.test('recipients whose email failed have their own outcome and chip', async (t) => {
  const own = await makeTeam(service)
  const reader = await signedIn(service, { team: own.id, role: 'viewer' })
  const broadcast = await aBroadcast(service, own)
  const other = await aBroadcast(service, own)
  const people = `/teams/${own.id}/broadcasts/${broadcast.id}/people`
  for (const each of ['waiting', 'failed', 'expired']) await broadcast.emails(`${each}@example.net`)
  await other.emails('other@example.net')
  const named = (name: string) =>
    sql.fragment`(select id from accepted_emails where team_id = ${own.id} and to_emails = ${sql.array([`${name}@example.net`], 'text')})`
  await database.query(sql.unsafe`
    insert into email_events (team_id, email_id, event_key, kind, occurred_at, detail)
    select team_id, id, uuid_send(gen_random_uuid()), 'gave_up', clock_timestamp(), '451 later' from email_states
    where team_id = ${own.id} and id <> ${named('waiting')}`)
  await database.query(sql.unsafe`
    update email_states set expired_at = now() where team_id = ${own.id} and id = ${named('expired')}`)
  const all = await reader.get(people)
  shows(t, all, /All emails 3 queued 1 .* failed 2 skipped 0 /)
  for (const words of ['queued waiting@', 'failed failed@', 'expired expired@']) shows(t, all, words)
  const failed = await reader.get(`${people}?status=failed`)
  for (const words of ['failed failed@', 'expired expired@', 'Failed includes expired emails.'])
    shows(t, failed, words)
  t.notMatch(textOf(failed.html), /waiting@|other@/)
  const queued = await reader.get(`${people}?status=queued`)
  shows(t, queued, 'queued waiting@')
  t.notMatch(textOf(queued.html), /failed@|expired@/)
  const file = (await reader.get(`${people}.csv?status=failed`)).html.trim().split('\r\n')
  t.strictSame(file.map((line) => line.split(',').at(-1)).toSorted(), ['ended', 'expired', 'failed'])
  const none = `/teams/${own.id}/broadcasts/${other.id}/people?status=queued`
  shows(t, await reader.get(none), 'No recipient matches.')
  for (const each of [broadcast, other]) await each.become('cancelled')
})

t.test('creates, sends and evaluates a broadcast', async (t) => {
  const sink = await startSmtpSink(t)
  const topic = await topicOf('News')
  const other = await topicOf('Customers')
  const template_id = await templateOf('<p>Hello {{name}}</p><a href="{{unsubscribe_url}}">off</a>')
  await contact('ana@example.org', topic, { name: 'Ana', city: 'Graz' })
  await contact('ben@example.org', topic, { city: 'Graz' })
  await contact('vienna@example.org', topic, { name: 'Vi', city: 'Wien' })
  await contact('customer@example.org', other, { name: 'Cu', city: 'Graz' })
  const condition = { 'property.0': 'city', 'op.0': 'eq', 'value.0': 'Graz' }
  const path = await draft({ template_id, topic_ids: topic, ...condition })
  shows(t, await editor.get(`${path}/edit?step=audience`), /News \(3\).*Customers \(1\)/)
  const drafted = await editor.get(path)
  shows(t, drafted, /draft Draft: .*Topics News Conditions city is Graz/)
  shows(t, drafted, /Contacts 2 Missing a variable 1 Skipped: no value for name/)
  shows(t, drafted, 'Nothing is missing.')
  const asked = await editor.ask(`${path}/send`, formTo(drafted.html, `${path}/send`))
  shows(t, asked, 'Send “Spring” to 2 contacts of News?')
  const previewed = await editor.get(`${path}?contact=ana@example.org`)
  shows(t, previewed, /Preview for Ana .* Hi Ana/)
  t.match((await editor.get(`${path}/preview?contact=ana%40example.org`)).html, '<p>Hello Ana</p>')
  shows(t, await editor.get(`${path}?contact=ben@example.org`), /Preview for ben@.*no value for name/)
  t.match((await editor.get(`${path}/preview?contact=ben%40example.org`)).html, '<p>Hello [name]</p>')
  await startWorker(t, service, { smtp_url: sink.url })
  const tested = await after(await editor.post(`${path}/test`, { to: 'me@example.net', contact: '' }))
  shows(t, tested, 'A test is on its way.')
  await until('the test is there', () => sink.messages().length === 1)
  t.same(sink.last().rcpt_to, ['me@example.net'])
  const many = Array.from({ length: 6 }, (_, nth) => `me${nth}@example.net`).join(', ')
  t.match(await editor.post(`${path}/test`, { to: many }), { status: 400 })
  const started = await after(await editor.press(path, `${path}/send`))
  shows(t, started, /Spring is being sent/)
  await until('it is sent', async () => textOf((await editor.get(path)).html).includes('sent Sent: '))
  const sent = await viewer.get(path)
  shows(
    t,
    sent,
    /Sent: 1 of 2 contacts, 1 skipped.*Audience 2 Sent 1 Delivered 0 your mail server doesn’t report deliveries Opened 0 Clicked 0 Bounced 0 0 % .* Skipped 1/,
  )
  t.match(sink.last().rcpt_to, ['ana@example.org'])
  shows(t, await viewer.get(`${path}/people?status=sent`), /sent Ana ana@example\.org/)
  shows(t, await viewer.get(`${path}/people?status=bounced`), 'No recipient matches.')
  shows(t, await viewer.get(`${path}/people`), /All emails 1 queued 0 sent 1 delivered 0 .* skipped 1 /)
  shows(t, await viewer.get(`${path}/skips`), /ben@example\.org No value for name/)
  const { html: recipients } = await viewer.get(`${path}/people.csv`)
  t.match(recipients, /^\uFEFF?email,status,detail,[\s\S]*\r\nana@example\.org,sent,/)
  t.match((await viewer.get(`${path}/skips.csv`)).html, /\r\nben@example\.org,variables,no value for name,/)
  const list = await viewer.get(at('broadcasts'))
  shows(t, list, /sent Spring 1 of 2 /)
  t.match(list.html, 'title="1 of 2 contacts, 1 skipped"')
  await contact('late@example.org', topic, { name: 'Late', city: 'Graz' })
  await call('PATCH', '/v1/contacts/ben@example.org', {
    key: team.key,
    body: { properties: { name: 'Ben', city: 'Graz' } },
  })
  const again = await editor.get(`${path}/again`)
  shows(
    t,
    again,
    /← Spring .* 2 contacts match now and haven’t received it.* Send to 2 contacts Recipients Contact Ben ben@example\.org Late late@example\.org .*Preview for Ben Acme <hello@example\.com> Hi Ben/,
  )
  t.strictSame(mainActs(again), ['Send to 2 contacts'])
  const before = sink.messages().length
  shows(t, await after(await editor.press(`${path}/again`, `${path}/again`)), /Spring is being sent/)
  await until('all of it is sent', async () => textOf((await editor.get(path)).html).includes('sent Sent: '))
  const more = sink.messages().slice(before)
  t.same(more.flatMap(({ rcpt_to }) => rcpt_to).sort(), ['ben@example.org', 'late@example.org'])
  const reached = await viewer.get(path)
  shows(t, reached, /Sent: 3 of 3 contacts.*Of audience Contacts Of sent .*Audience 3 Sent 3 Delivered/)
  const nobody = await editor.get(`${path}/again`)
  shows(t, nobody, 'All contacts that match now have already received it.')
  t.notMatch(nobody.html, 'Send to 0 contacts', 'what would be refused is not offered')
  t.equal((await editor.post(`${path}/again`)).status, 409)
  const actions = (await auditEntries(database, { team: team.id, limit: 10 })).map(({ action }) => action)
  for (const action of ['broadcast.create', 'broadcast.test', 'broadcast.start', 'broadcast.again'])
    t.ok(actions.includes(action), action)
})

t.test('counts are cumulative: clicked includes opened, opened includes delivered', async (t) => {
  const broadcast = await aBroadcast(service, team)
  const path = at(`broadcasts/${broadcast.id}`)
  const [first = ''] = await broadcast.emails(
    ...Array.from({ length: 12 }, (_, nth) => `reader${nth}@example.net`),
  )
  await database.query(sql.unsafe`update broadcasts set audience = 12 where id = ${broadcast.id}`)
  await broadcast.moved({ queued: -11, delivered: 5, opened: 3, clicked: 2, bounced: 1 })
  const page = await viewer.get(path)
  shows(
    t,
    page,
    /45\.5 % opened, 18\.2 % clicked\. .*Audience 12 Not sent yet 1 Sent 11 Delivered 10 90\.9 % Opened 5 45\.5 % Clicked 2 18\.2 % Bounced 1 9\.1 % limit 5\.0 % /,
  )
  shows(t, page, /11 of 12 contacts.* 91 %\./)
  t.notMatch(page.html, 'class="tag bad"', 'too few emails for a limit')
  t.match(page.html, /<progress[^>]* value="11" max="12"|<progress[^>]* max="12" value="11"/)
  await database.query(sql.unsafe`
    update broadcasts set started_at = now() - interval '11 minutes' where id = ${broadcast.id}`)
  shows(t, await viewer.get(path), /91 %, about 1 email a minute, done in about 1 minute\./)
  await database.query(sql.unsafe`update email_states set status = 'clicked' where id = ${first}`)
  shows(t, await viewer.get(`${path}/people?status=opened`), /clicked reader0@example\.net/)
  await editor.post(`${path}/cancel`)
})

t.test('a rate that can’t pause the broadcast yet isn’t red', async (t) => {
  const broadcast = await aBroadcast(service, team)
  const path = at(`broadcasts/${broadcast.id}`)
  await database.query(sql.unsafe`update broadcasts set audience = 4690 where id = ${broadcast.id}`)
  await broadcast.moved({ sent: 889, bounced: 8, complained: 3 })
  const few = await viewer.get(path)
  shows(t, few, /Complained 3 0\.33 % limit 0\.10 % from 1,000 emails/)
  t.notMatch(few.html, 'class="tag bad"')
  const set = (figure: string, count: number) =>
    database.query(
      sql.unsafe`update broadcast_figures set count = ${count} where broadcast_id = ${broadcast.id} and figure = ${figure}`,
    )
  await Promise.all([set('sent', 1_290), set('complained', 2)])
  const two = await viewer.get(path)
  shows(t, two, /Complained 2 0\.15 % limit 0\.10 % from 3 complaints/)
  t.notMatch(two.html, 'class="tag bad"')
  await set('complained', 3)
  const page = await viewer.get(path)
  shows(t, page, /Complained 3 0\.23 % limit 0\.10 % (?!from)/)
  t.match(page.html.match(/bad[^>]*>[\d.]+\s%/g), { length: 1 })
  await editor.post(`${path}/cancel`)
})

t.test('rates above their limits are red, and the alert names both', async (t) => {
  const broadcast = await aBroadcast(service, team)
  const path = at(`broadcasts/${broadcast.id}`)
  await broadcast.moved({ sent: 1_780, bounced: 200, complained: 20 })
  await database.query(sql.unsafe`
    update broadcasts set audience = 4690, state = 'paused', state_reason = 'bounces',
      brake = '{"left": 2000, "count": 200, "limit": 5}' where id = ${broadcast.id}`)
  const page = await editor.get(path)
  shows(
    t,
    page,
    /auto-paused .*Too many of its emails bounced: 10\.0 % of 2,000 emails, limit 5\.0 %\. Complaints are also above their limit: 1\.0 % of 2,000 emails, limit 0\.10 %\. Check the addresses .*Not sent yet 2,690 Sent 2,000 .*Auto-paused .* Too many of its emails bounced: 10\.0 % of 2,000 emails, limit 5\.0 %\. Started/,
  )
  const table = /<section[^>]*id="outcomes"[\s\S]*?<\/section>/.exec(page.html)?.[0] ?? ''
  t.match(table.match(/bad[^>]*>[\d.]+\s%/g), { length: 2 })
  const read = textOf((await viewer.get(path)).html)
  t.match(read, /limit 0\.10 %\. /)
  t.notMatch(read, 'Check the addresses', 'a viewer can’t resume it')
  await editor.post(`${path}/cancel`)
  shows(t, await viewer.get(path), / Not sent 2,690 Sent 2,000 /)
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
    /Starts in 1 day \(\w{3}, [^)]*UTC\)\. Pause updates Forecast Contacts 3 match now\. The audience is chosen when it starts Missing a variable 1 Skipped: no value for name Takes about 3 minutes at 1 email a minute /,
  )
  t.notMatch(textOf(page.html), /Outcome|Before it can start/)
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
      send_at = now() + interval '2 hours' where id = ${broadcast.id}`)
  const path = at(`broadcasts/${broadcast.id}`)
  shows(t, await editor.get(at('broadcasts')), /scheduled Advent [^%]* in 1 hour/)
  shows(t, await editor.get(path), /Scheduled for \w{3}, .* UTC\. If nothing changes by then, it is paused\./)
  await after(await editor.post(`${path}/cancel`))
  shows(t, await editor.get(at('broadcasts')), /cancelled Advent – – – – not started/)
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

t.test('a requeue leaves out suppressed contacts of a broadcast, whose bounces stay', async (t) => {
  let isRefusing = true
  const onRcpt = () => (isRefusing ? '552 5.3.4 too large for me' : undefined)
  const sink = await startSmtpSink(t, { onRcpt })
  const worker = await startWorker(t, service, { smtp_url: sink.url })
  const broadcast = await aBroadcast(service, team)
  const [blocked = ''] = await broadcast.emails('blocked@example.net', 'open@example.net')
  await until('both bounced', async () => (await broadcast.figures()).bounced === 2)
  const one = ['email', 'requeue', team.id, blocked, '--force']
  await cli.json(one)
  const status = async () => (await cli.json(['email', 'show', team.id, blocked])).status
  await until('it bounced again', async () => (await status()) === 'bounced')
  isRefusing = false
  await cli.json(['suppression', 'add', team.id, 'blocked@example.net', '--cause', 'manual'])
  for (const options of [['--dry-run'], []])
    t.match(await cli.fault([...one, ...options]), /suppressed address/)
  const page = await editor.get(at(`emails/all?broadcast=${broadcast.id}`))
  shows(t, page, /Rejected by a server 1 can be sent again To suppressed addresses 1 left out/)
  const requeue = ['email', 'requeue', team.id, '--broadcast', broadcast.id, '--force']
  t.match(await cli.json([...requeue, '--dry-run']), { requeued: 1, suppressed: 1 })
  t.match(await cli.json(requeue), { suppressed: 1 })
  await until('the other is sent', async () => (await broadcast.figures()).sent === 1)
  t.match(await broadcast.figures(), { bounced: 1 })
  t.strictSame(await broadcast.skips(), {})
  t.notOk(sink.recipients().flat().includes('blocked@example.net'))
  await worker.stop()
  await broadcast.become('cancelled')
})

t.test('requeues the failed emails of one broadcast only', async (t) => {
  let isRefusing = true
  const onRcpt = (to: string) =>
    isRefusing && to.startsWith('no') ? '552 5.3.4 too large for me' : undefined
  const sink = await startSmtpSink(t, { onRcpt })
  const worker = await startWorker(t, service, { smtp_url: sink.url })
  const [broadcast, other] = [await aBroadcast(service, team), await aBroadcast(service, team)]
  await broadcast.emails('no@example.net', 'yes@example.net')
  await other.emails('no-other@example.net')
  await until('all had their turn', async () => {
    const [one, two] = [await broadcast.figures(), await other.figures()]
    return one.bounced === 1 && one.sent === 1 && two.bounced === 1
  })
  isRefusing = false
  const page = await editor.get(at(`broadcasts/${broadcast.id}`))
  shows(t, page, 'Send failed emails again')
  shows(t, page, /Why emails bounced The message is too large for the server 1/)
  const found = await cli.json([
    ...['email', 'requeue', team.id, '--broadcast', broadcast.id, '--force', '--dry-run'],
  ])
  t.match(found, { requeued: 1, dry_run: true })
  const all = await editor.get(at(`emails/all?broadcast=${broadcast.id}`))
  shows(
    t,
    all,
    /Bulk actions: emails of “[^”]+” 2 emails\. Emails that start to match later aren’t affected\./,
  )
  t.match(all.html, new RegExp(`class="back"><a href="[^"]*/broadcasts/${broadcast.id}"`))
  const none = await editor.get(at(`emails/all?broadcast=${broadcast.id}&status=clicked`))
  shows(t, none, /0 emails, Status: clicked\. No emails match/)
  const listed = await editor.get(at(`emails?broadcast=${broadcast.id}`))
  t.notMatch(textOf(listed.html), broadcast.id, 'its name and not its ID')
  const [fields = {}] = formsTo(all, at('emails/all/requeue'))
  t.equal((await editor.post(at('emails/all/requeue'), { ...fields, force: 'refused' })).status, 303)
  await until('it is sent', async () => (await broadcast.figures()).sent === 2)
  t.strictSame(await other.figures(), { made: 1, bounced: 1 })
  t.strictSame(await broadcast.figures(), { made: 2, sent: 2 })
  await worker.stop()
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
  shows(t, all, new RegExp(`sent Done ${opened} 0 % 0 % .*auto-paused Stopped .* – – .*paused By hand`))
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
