/** Broadcasts on the dashboard: start, stats, recipients and requeues. */
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { auditEntries } from '../../../db/accounts/audit/audit.sql.ts'
import { broadcastById } from '../../../db/messages/broadcasts/broadcasts.sql.ts'
import { hasAllEmails } from '../../../db/messages/broadcasts/view.ts'
import { deleteEmails } from '../../../db/messages/emails/delete.sql.ts'
import { keepStats } from '../../../db/stats/daily/broadcasts.sql.ts'
import { startBroadcastPages } from '../../support/broadcast-pages.ts'
import { aBroadcast } from '../../support/broadcasts.ts'
import { formsTo, mainActs, shows, signedIn, textOf } from '../../support/dashboard.ts'
import { insertEmailRows } from '../../support/email-rows.ts'
import { formTo } from '../../support/forms.ts'
import { makeTeam } from '../../support/service.ts'
import { startSmtpSink } from '../../support/smtp-sink.ts'
import t from '../../support/tap.ts'
import { uuidAt } from '../../support/uuid-sql.ts'
import { startWorker, until } from '../../support/worker.ts'

const pages = await startBroadcastPages(t)
const { service, call, cli, database, team, editor, viewer, at, after, topicOf, contact, templateOf } = pages
const { draft } = pages

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
  shows(t, await reader.get(people), /Status Contact Accepted bounced old@example\.net/)
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
  shows(
    t,
    await reader.get(`${all}&status=queued`),
    /Bulk actions on 0 emails Status: queued\. No emails match/,
  )
  await broadcast.moved({ skipped: 4 })
  shows(t, await reader.get(`${path}/skips`), 'These entries have been deleted. Their count is kept.')
})

t.test('bulk actions and the list start at the time of the broadcast', async (t) => {
  const own = await makeTeam(service)
  const reader = await signedIn(service, { team: own.id, role: 'editor' })
  const broadcast = await aBroadcast(service, own)
  await database.query(
    sql.unsafe`update teams set created_at = now() - interval '50 days' where id = ${own.id}`,
  )
  await database.query(sql.unsafe`
    update broadcasts set created_at = now() - interval '40 days', ended_at = now() - interval '30 days'
    where id = ${broadcast.id}`)
  // The second one is newer than the broadcast, so the search leaves it out.
  for (const minutes of [30 * 1_440 + 1, 5]) {
    const at = sql.fragment`now() - make_interval(mins => ${minutes}::int)`
    await insertEmailRows(
      service,
      sql.fragment`
        select ${own.id} as team_id, ${uuidAt(at)} as id, ${own.domain_id}::uuid as domain_id,
          'a@example.com' as from_address, array[${`${minutes}@example.net`}] as to_emails, 'Old news' as subject,
          '' as html, '[]'::json as tags, 'sent' as status, ${at} as created_at, '' as reply_to, 1 as size_kb,
          ${broadcast.id}::uuid as broadcast_id`,
    )
  }
  const bulk = await reader.get(`/teams/${own.id}/emails/all?broadcast=${broadcast.id}`)
  shows(t, bulk, /← News Bulk actions on 1 email None of them can be sent again\. /)
  const list = await reader.get(`/teams/${own.id}/emails?broadcast=${broadcast.id}`)
  shows(t, list, '43201@example.net')
  t.notMatch(list.html, '5@example.net')
  const before = `&before=${uuidv7({ msecs: Date.now() - 31 * 86_400_000 })}`
  const rest = await reader.get(`/teams/${own.id}/emails/all?broadcast=${broadcast.id}${before}`)
  shows(t, rest, 'No emails match')
  const part = await reader.get(`/teams/${own.id}/emails/all?broadcast=${broadcast.id}&before=${uuidv7()}`)
  shows(t, part, /on 1 email .*Only emails from before .* are included/)
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
  shows(t, all, /All emails 3 queued 1 failed 2 Status /)
  const open = 'queued waiting@example.net just now'
  for (const words of [open, 'failed failed@', 'expired expired@']) shows(t, all, words)
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
    /Sent: 1 of 2 contacts, 1 skipped.*Audience 2 Sent 1 Delivered your mail server doesn’t report deliveries 0 Opened 0 Clicked 0 Bounced limit 5\.0 % 0 0 % .* Skipped 1/,
  )
  shows(t, sent, /What happened Ended .* Started .* Ended /)
  t.match(sink.last().rcpt_to, ['ana@example.org'])
  const people = await viewer.get(`${path}/people?status=sent`)
  shows(t, people, /Status Contact Last response Accepted sent Ana ana@example\.org /)
  t.match(people.html, /<a href="[^"]*\/emails\/[0-9a-f-]{36}">Ana<\/a>/)
  shows(
    t,
    await viewer.get(`${path}/people?status=bounced`),
    /sent 1 bounced 0 skipped 1 No recipient matches\./,
  )
  shows(t, await viewer.get(`${path}/people`), /All emails 1 sent 1 skipped 1 Status/)
  shows(t, await viewer.get(`${path}/skips`), /ben@example\.org No value for name/)
  const { html: recipients } = await viewer.get(`${path}/people.csv`)
  t.match(recipients, /^\uFEFF?email,status,detail,[\s\S]*\r\nana@example\.org,sent,/)
  t.match((await viewer.get(`${path}/skips.csv`)).html, /\r\nben@example\.org,variables,no value for name,/)
  const list = await viewer.get(at('broadcasts'))
  shows(t, list, /Spring sent 1 of 2 /)
  t.match(list.html, 'title="1 of 2 contacts, 1 skipped"')
  await contact('late@example.org', topic, { name: 'Late', city: 'Graz' })
  await call('PATCH', '/v1/contacts/ben@example.org', {
    key: team.key,
    body: { properties: { name: 'Ben', city: 'Graz' } },
  })
  shows(t, await viewer.get(`${path}/skips`), 'ben@example.org No value for name but has one now')
  const again = await editor.get(`${path}/again`)
  shows(
    t,
    again,
    /← Spring .* 2 contacts match now and haven’t received it.* Send to 2 contacts Recipients Contact Why it wasn’t sent Ben ben@example\.org No value for name but has one now Late late@example\.org Didn’t match but matches now .*Preview for Ben Acme <hello@example\.com> Hi Ben/,
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
    /45\.5 % opened, 18\.2 % clicked\. .*Audience 12 Not sent yet 1 Sent 11 Delivered 10 90\.9 % Opened 5 45\.5 % Clicked 2 18\.2 % Bounced limit 5\.0 % 1 9\.1 % /,
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
  shows(t, few, /Complained limit 0\.10 % after 1,000 emails 3 0\.33 %/)
  t.notMatch(few.html, 'class="tag bad"')
  const set = (figure: string, count: number) =>
    database.query(
      sql.unsafe`update broadcast_figures set count = ${count} where broadcast_id = ${broadcast.id} and figure = ${figure}`,
    )
  await Promise.all([set('sent', 1_290), set('complained', 2)])
  const two = await viewer.get(path)
  shows(t, two, /Complained limit 0\.10 % after 3 complaints 2 0\.15 %/)
  t.notMatch(two.html, 'class="tag bad"')
  await set('complained', 3)
  const page = await viewer.get(path)
  shows(t, page, /Complained limit 0\.10 % 3 0\.23 %/)
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
  shows(
    t,
    page,
    /Rejected by a server 1 bounced at once, can be sent again To suppressed addresses 1 left out Why emails bounced Reason Emails The message is too large for the server 2 Send again No server has accepted these emails/,
  )
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
  shows(t, page, /Why emails bounced Reason Emails The message is too large for the server 1 .*What happened/)
  const found = await cli.json([
    ...['email', 'requeue', team.id, '--broadcast', broadcast.id, '--force', '--dry-run'],
  ])
  t.match(found, { requeued: 1, dry_run: true })
  const all = await editor.get(at(`emails/all?broadcast=${broadcast.id}`))
  shows(
    t,
    all,
    /Bulk actions on 2 emails Emails that match later aren’t included\. .*Rejected by a server 1 .* Accepted, scheduled or expired 1 left out/,
  )
  t.match(all.html, new RegExp(`class="back"><a href="[^"]*/broadcasts/${broadcast.id}"`))
  const row = await broadcastById(database, team.id, broadcast.id)
  const isAll = (count: number, state = 'cancelled' as const) =>
    row && hasAllEmails(database, { ...row, state }, count)
  t.strictSame([await isAll(1), await isAll(2)], [false, true], 'an incomplete search can find all')
  const madeAt = (hours: number) =>
    database.query(sql.unsafe`
      update broadcasts set created_at = created_at + make_interval(hours => ${hours}) where id = ${broadcast.id}`)
  await madeAt(1)
  const later = await editor.get(at(`emails/all?broadcast=${broadcast.id}`))
  shows(t, later, 'These emails have been deleted')
  t.notMatch(textOf(later.html), 'search took too long', 'nothing is older than the broadcast')
  await madeAt(-1)
  const none = await editor.get(at(`emails/all?broadcast=${broadcast.id}&status=clicked`))
  shows(t, none, /on 0 emails Status: clicked\. No emails match/)
  const listed = await editor.get(at(`emails?broadcast=${broadcast.id}`))
  t.notMatch(textOf(listed.html), broadcast.id, 'its name and not its ID')
  const [fields = {}] = formsTo(all, at('emails/all/requeue'))
  t.equal((await editor.post(at('emails/all/requeue'), { ...fields, force: 'refused' })).status, 303)
  await until('it is sent', async () => (await broadcast.figures()).sent === 2)
  t.strictSame(await other.figures(), { made: 1, bounced: 1 })
  t.strictSame(await broadcast.figures(), { made: 2, sent: 2 })
  await worker.stop()
})
