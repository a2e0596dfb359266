/** The operator's pages of queues, senders and workers, and their state on the overview. */
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { string } from 'yup'
import { waitingWords } from '../../../api/dashboard/pages/operator/queue-cells.ts'
import { QUEUES } from '../../../db/delivery/queues.ts'
import { row } from '../../../db/postgres/rows.ts'
import { openConsumer } from '../../../db/queue/boss.ts'
import type { End, JobName } from '../../../db/queue/jobs.ts'
import { RESTORED, storePauses } from '../../../db/queue/pauses.sql.ts'
import { storeSignOfLife } from '../../../db/stats/fleet/fleet.sql.ts'
import { formsTo, type Seen, shows, signedIn, textOf } from '../../support/dashboard.ts'
import { idleGauges } from '../../support/gauges.ts'
import { pauseSender } from '../../support/senders.ts'
import { anEmail, makeTeam, sendEmail, startService } from '../../support/service.ts'
import t from '../../support/tap.ts'
import { giveNumber, makeNumber } from '../../support/whatsapp-numbers.ts'

const service = await startService(t)
const { database } = service
const operator = await signedIn(service, { operator: true, email: 'operator@example.com' })

/** Claims jobs of reports and dead-letters them for these reasons. */
async function giveUp(reasons: readonly string[]): Promise<void> {
  const payloads = reasons.map(() => ({ report_id: uuidv7() }))
  await database.transaction((tx) => service.deps.queue.enqueue(tx, 'ingest-report', payloads))
  const consumer = await openConsumer(service.url, { connections: 2, onError: () => {} })
  const claims = consumer.claims('ingest-report')
  const jobs = await claims.fetch(reasons.length)
  const ends = jobs.map((job, at): [typeof job, End] => [job, { end: 'given_up', reason: reasons[at] ?? '' }])
  await database.transaction((tx) => claims.settle(tx, new Map(ends)))
  await consumer.stop(5_000)
}

/** Returns the cells of the only process on a host, after their labels. */
function processCells({ html }: Seen, host: string): string[] {
  const row = html.split('<tr').find((part) => part.includes(`host ${host},`)) ?? ''
  return row
    .replace(/<\/tr>[\s\S]*/, '')
    .split('<td')
    .slice(1)
    .map((cell) => {
      const label = /data-label="([^"]*)"/.exec(cell)?.[1]
      return textOf(`${label === undefined ? '' : `${label}: `}<td${cell}`)
    })
}

t.test('the overview shows the state of queues, senders and workers', async (t) => {
  t.equal((await operator.get('/')).location, '/operator')
  shows(t, await operator.get('/operator'), /Checks PostgreSQL \d\S* .* Clocks agree .* All checks/)
  shows(
    t,
    await operator.get('/operator'),
    /Is everything going out\? no: no worker, 1 risk .*No worker is running.*A crash of the database.* Workers 0/,
  )
  const life = { id: uuidv7(), kind: 'worker', host: 'w1', pid: 1, queues: ['deliver-email'] } as const
  const gauges = idleGauges()
  const senders = { 'deliver-email': 'smtp:mail.example.test:587' }
  const completed = { 'deliver-email': 12.4 }
  await storeSignOfLife(database, { ...life, gauges, senders, completed, started_at: new Date() }, [])
  shows(t, await operator.get('/operator/queues'), /Emails 0 – 0 12\/s 0 1 Pause/)
  const page = await operator.get('/operator')
  shows(
    t,
    page,
    /Is everything going out\? yes, but 1 risk .*A crash of the database can lose accepted messages\. .* are off\./,
  )
  shows(t, page, /Going out now 12\/s .*Workers 1 .*smtp:mail\.example\.test:587 no problems/)
  t.notMatch(textOf(page.html), /No worker is running|not responding/)
  const current = processCells(page, 'w1')
  t.match(current, [
    /^worker host w1, process 1, only Emails, version \S+, started just now/,
    'Last seen: just now',
    'Busy: 0 % lag 0 ms',
    'Memory: 0 MB',
  ])
  const waiting = await makeTeam(service)
  const { status } = await service.call('POST', '/v1/emails', { key: waiting.key, body: anEmail() })
  t.equal(status, 201)
  const queued = await operator.get('/operator')
  shows(t, queued, /Emails 1 the oldest for .* 0 0\/s .*Waiting to go out 1 the oldest for /)
  await database.query(sql.unsafe`
    update pgboss.job set start_after = now() + interval '59 minutes 30 seconds' where name = 'deliver-email'`)
  const calm = await operator.get('/operator')
  shows(t, calm, /Emails 1 deferred 0 .*Waiting to go out 1 deferred /)
  t.notMatch(calm.html, 'class="tag warn">1<')
  await pauseSender(database, { key: 'smtp:mail.example.test:587', ceiling: 100 }, 600, '421 4.7.0 Later')
  // A slow machine may have lost sight of the worker.
  await storeSignOfLife(database, { ...life, gauges, senders, completed, started_at: new Date() }, [])
  const held = await operator.get('/operator')
  shows(t, held, /going out\? no: 1 sender paused, 1 risk .*Emails 1 deferred, sender paused 0/)
  shows(t, held, /421 4\.7\.0 Later\. Waiting: 1 email of 1 team\./)
  t.match(held.html, 'class="tag warn">1<', 'the number that something stops')
  const ofQueue = await operator.get('/operator/queues/deliver-email')
  shows(
    t,
    ofQueue,
    /Waiting by team Team First one due Waiting .* in 59 minutes 1 Why jobs are deferred .* No attempt yet 1 – in 59 minutes/,
  )
  t.match(ofQueue.html, `href="/dashboard/operator/teams/${waiting.id}"`)
  shows(t, ofQueue, /Waiting 1 deferred Oldest due .* Workers 1 .*No failed jobs\. Workers w1 \(process 1\)/)
  const health = await operator.get('/operator/health')
  shows(t, health, /Email smtp:mail\.example\.test:587 paused: 421 4\.7\.0 Later/)
  const queue = await operator.get('/operator/queues/deliver-email')
  shows(
    t,
    queue,
    /Nothing goes out through smtp:mail\.example\.test:587 for another \d+ min \d+ s\. 421 4\.7\.0 Later/,
  )
  const other = await operator.get('/operator/queues/deliver-webhook')
  t.notMatch(textOf(other.html), 'Nothing goes out')
  await operator.post('/operator/senders/resume?key=smtp%3Amail.example.test%3A587')
  await database.query(sql.unsafe`
    update processes set seen_at = now() - interval '1 minute' where host = 'w1'`)
  const queues = await operator.get('/operator/queues')
  shows(t, queues, /No worker is running\. .*Emails 1 deferred, no worker – 0 0\/s 0 0 Pause/)
  for (const path of ['/queues', '/queues/deliver-email', '/health', ''])
    shows(
      t,
      await operator.get(`/operator${path}`),
      /No worker is running\. The last one responded 1 minute ago\. .* or run: node .* workers\/main\.ts/,
    )
  t.match((await operator.get('/operator/health')).html, /operator\/queues">Show queues</)
  t.notMatch((await operator.get('/operator/queues')).html, 'Show queues', 'it is this page')
  const stuck = textOf((await operator.get('/operator/queues/deliver-email')).html)
  t.equal(stuck.match(/no worker/gi)?.length, 1, 'the alert says it')
  shows(
    t,
    await operator.get('/operator/health'),
    /Processes No worker is running 1 worker not responding w1 1 minute ago /,
  )
  const silent = await operator.get('/operator')
  t.match(silent.html, '<span class="tag bad">worker, not responding</span>')
  const last = processCells(silent, 'w1')
  t.match(last, [/^worker, not/, /^Last seen: 1 minute ago$/, /^Busy:\W*$/, 'Memory: 0 MB'], 'no old load')
  t.match((await operator.get('/operator/queues')).html, '<span class="tag bad">0</span>')
  await database.query(sql.unsafe`delete from pgboss.job where name = 'deliver-email'`)
})

t.test('deferred jobs are counted unless all are deferred', (t) => {
  const words = (ready: number, deferred: number) => waitingWords({ ready, deferred }, null)
  t.strictSame(
    [words(1, 2), words(0, 2), words(0, 1), words(1, 0)],
    ['2 deferred', 'all deferred', 'deferred', ''],
  )
  t.end()
})

t.test("the operator's answer counts everything that stops messages, and nothing else", async (t) => {
  const worker = { id: uuidv7(), kind: 'worker', host: 'w2', pid: 2 } as const
  const life = { ...worker, queues: [], senders: {}, completed: {} }
  const answers = async (words: RegExp) => {
    await storeSignOfLife(database, { ...life, gauges: idleGauges(), started_at: new Date() }, [])
    shows(t, await operator.get('/operator'), words)
  }
  await storePauses(database, ['sync-whatsapp-templates'], { paused_by: 'cli' }, new Date())
  await answers(/going out\? yes, but 1 risk .*The queue WhatsApp template sync is paused/)
  const whatsapp = ['deliver-whatsapp', 'deliver-whatsapp-parts'] as const
  await storePauses(database, whatsapp, { paused_by: 'cli' }, new Date())
  await answers(/going out\? no: 1 queue paused, 1 risk /)
  await storePauses(database, ['expand-broadcast'], { paused_by: 'cli' }, new Date())
  await answers(/going out\? no: 2 queues paused, 1 risk /)
  await database.query(sql.unsafe`delete from paused_queues`)
  await storePauses(database, ['deliver-email', 'deliver-webhook'], { reason: RESTORED }, new Date())
  await answers(/going out\? no: a restored copy, 1 risk /)
  await storePauses(database, ['deliver-whatsapp'], { paused_by: 'cli' }, new Date())
  await answers(/going out\? no: 3 problems /)
  await database.query(sql.unsafe`delete from paused_queues`)
  const digest = await database.oneFirst(sql.type(row({ digest: string() }))`
    select digest from schema_migrations where number = 1`)
  const become = (to: string) =>
    database.query(sql.unsafe`update schema_migrations set digest = ${to} where number = 1`)
  await become('other')
  await answers(
    /going out\? no: the database can’t be used, 1 risk .*The database can’t be used\. The .*another version's schema/,
  )
  await become(digest)
  const number = { name: 'unused', phone_number_id: '902', account_id: '900', token: 'a token' }
  await makeNumber(service, number)
  await pauseSender(database, { key: 'whatsapp:902', ceiling: 80 }, 600, '131048')
  await answers(/going out\? yes, but 1 risk .*the number unused .* No team uses the number\./)
  const pages = ['/operator', '/operator/health', '/operator/numbers/unused']
  const judged = async (words: string) => {
    for (const path of pages) {
      const { html } = await operator.get(path)
      const alert = html.split('<li class="').find((part) => part.includes('131048'))
      t.match(alert, /^warn"/, path)
      t.match(alert, `131048. ${words}`, path)
      t.match(alert, /href="[^"]*\/operator\/(senders|numbers\/unused)"/, path)
    }
  }
  await judged('No team uses the number.')
  const numberPage = await operator.get('/operator/numbers/unused')
  for (const { html } of [numberPage, await operator.get('/operator/senders')])
    t.match(html, /<span class="tag warn">paused</)
  t.ok(
    numberPage.html.indexOf('id="needs"') < numberPage.html.indexOf('class="columns"'),
    'alerts come first',
  )
  const { id } = await makeTeam(service)
  await giveNumber(service, id, number.name)
  await answers(/going out\? no: 1 sender paused, 1 risk .*the number unused .* No messages wait\./)
  await judged('No messages wait.')
  await giveNumber(service, id, null)
  await database.query(sql.unsafe`delete from senders where key = 'whatsapp:902'`)
  await database.query(sql.unsafe`delete from whatsapp_numbers`)
  await answers(/going out\? yes, but 1 risk /)
  await database.query(sql.unsafe`delete from processes where id = ${life.id}`)
})

t.test('names the versions of processes that differ for more than 10 minutes', async (t) => {
  const life = { kind: 'worker', pid: 4, queues: QUEUES, senders: {}, completed: {} } as const
  const start = async (host: string, version: string, minutes: number) => {
    const started_at = new Date(Date.now() - minutes * 60_000)
    const gauges = { ...idleGauges(), version }
    await storeSignOfLife(database, { ...life, id: uuidv7(), host, gauges, started_at }, [])
  }
  const overview = async () => textOf((await operator.get('/operator')).html)
  await start('old', '0.9.0', 60)
  await start('other', '0.9.0', 11)
  t.notMatch(await overview(), 'Processes run', 'the same version')
  await start('new', '0.10.0', 9)
  t.notMatch(await overview(), 'Processes run', 'a deployment')
  await start('newer', '0.10.0', 11)
  t.match(await overview(), 'Processes run 0.10.0 and 0.9.0. Finish the deployment.')
  t.match((await operator.get('/operator')).html, /<li class="warn"><div><strong>Processes run/)
  await database.query(sql.unsafe`
    update processes set seen_at = now() - interval '2 minutes' where host in ('old', 'other')`)
  t.notMatch(await overview(), 'Processes run', 'the old ones have stopped')
  await database.query(sql.unsafe`delete from processes where pid = 4`)
})

t.test('names queues with waiting jobs and no worker', async (t) => {
  const life = { kind: 'worker', host: 'w3', pid: 3, senders: {}, completed: {} } as const
  const leave = () => database.query(sql.unsafe`delete from processes where host = ${life.host}`)
  const work = async (...queues: JobName[]) => {
    await leave()
    const own = { id: uuidv7(), queues, gauges: idleGauges(), started_at: new Date() }
    await storeSignOfLife(database, { ...life, ...own }, [])
  }
  const unattended =
    /No worker processes the queue Broadcast recipients\. Waiting: 1\. .* expand-broadcast in WORKER_QUEUES/
  await database.transaction(async (tx) => {
    await service.deps.queue.enqueue(tx, 'expand-broadcast', [{ team_id: uuidv7(), broadcast_id: uuidv7() }])
    await service.deps.queue.enqueue(tx, 'check-email', [{ check_id: uuidv7() }])
  })
  await work('deliver-email', 'deliver-webhook')
  const page = await operator.get('/operator')
  shows(t, page, /going out\? no: 1 queue without a worker, 1 risk /)
  shows(t, page, unattended)
  shows(t, page, 'No worker processes the queue Email checks')
  shows(t, page, 'worker host w3, process 3, only Emails and Webhooks')
  shows(t, await operator.get('/operator/queues'), unattended)
  shows(t, await operator.get('/operator/queues/expand-broadcast'), unattended)
  shows(t, await operator.get('/operator/queues/deliver-broadcast'), 'Workers 0 No worker processes it.')
  await storePauses(database, ['expand-broadcast'], { paused_by: 'cli' }, new Date())
  t.notMatch(textOf((await operator.get('/operator')).html), unattended, 'the pause is the reason')
  await database.query(sql.unsafe`delete from paused_queues`)
  await work(...QUEUES.filter((queue) => queue !== 'mail-owners'))
  const all = await operator.get('/operator')
  shows(t, all, /going out\? yes, but 1 risk .*process 3, all queues except Notices to owners/)
  t.notMatch(textOf(all.html), 'No worker processes')
  await database.query(sql.unsafe`delete from pgboss.job where name in ('expand-broadcast', 'check-email')`)
  await leave()
})

t.test('pauses and resumes a queue', async (t) => {
  await operator.post('/operator/queues/deliver-email/pause')
  const by = new RegExp(`Emails, paused by ${operator.email}, just now `)
  shows(t, await operator.get('/operator/queues'), by)
  const paused = await operator.get('/operator/queues/deliver-email')
  shows(t, paused, /Emails paused .* Resume queue .* The queue Emails is paused by an operator\. Paused by/)
  shows(t, await operator.get('/operator'), /Emails, paused by/)
  await operator.post('/operator/queues/deliver-email/resume')
  t.notMatch((await operator.get('/operator/queues')).html, /Emails, paused/)
  t.equal((await operator.post('/operator/queues/no-such-queue/pause')).status, 404)
})

t.test('lists failed jobs by reason, and retries one reason', async (t) => {
  const path = '/operator/queues/ingest-report'
  shows(t, await operator.get(path), /No failed jobs/)
  await giveUp(['<b>one</b>', '<b>one</b>', 'other'])
  shows(t, await operator.get('/operator/queues'), /Delivery reports \d+ .*3 see why/)
  const page = await operator.get(path)
  shows(t, page, /<b>one<\/b> 2 0 .* just now …\S+ Retry 2 jobs other 1 .* Retry 1 job/)
  const { status: uncounted } = await operator.post(`${path}/redrive`, { reason: 'other' })
  t.equal(uncounted, 400, 'how many, it does not say')
  await giveUp(['<b>one</b>'])
  const [, ones = {}] = formsTo(page, `${path}/redrive`)
  const moved = await operator.post(`${path}/redrive`, ones)
  t.match(moved, { status: 303 })
  shows(t, await operator.get(path), /2 jobs of Delivery reports will be retried.*<b>one<\/b> 1 .*other 1/)
  const all = await operator.get(path)
  await giveUp(['third'])
  await operator.post(`${path}/redrive`, formsTo(all, `${path}/redrive`)[0])
  shows(t, await operator.get(path), /2 jobs of Delivery reports will be retried.* third 1/)
})

t.test('shows the response of a paused sender, and resumes it', async (t) => {
  const words = '554 5.7.1 <script>Access denied'
  await pauseSender(database, { key: 'smtp:relay.test', ceiling: 100 }, 600, words)
  const page = await operator.get('/operator/senders')
  shows(t, page, /smtp:relay\.test paused (just now|\d+ seconds ago) in (9|10) min /)
  shows(t, page, /Access denied/)
  t.notMatch(page.html, /<script>Access/)
  t.match(page.html, /<button class="small quiet">Resume now/, 'it is attempted anyway')
  const life = { id: uuidv7(), kind: 'worker', host: 'w2', pid: 2, queues: ['deliver-email'] } as const
  const figures = { gauges: idleGauges(), senders: {}, completed: {} }
  await storeSignOfLife(database, { ...life, ...figures, started_at: new Date() }, [])
  shows(
    t,
    await operator.get('/operator'),
    /going out\? no: 1 sender paused, 1 risk .*Nothing goes out through smtp:relay\.test for another \d+ min .* 554 5\.7\.1 .* No messages wait\. Show senders/,
  )
  t.match((await operator.get('/operator')).html, /<li class="warn"><div><strong>Nothing goes out/)
  t.notMatch(textOf((await operator.get('/operator/queues')).html), 'is waiting for', 'nothing waits')
  const team = await makeTeam(service)
  const id = await sendEmail(service, team)
  const queues = await operator.get('/operator/queues')
  shows(
    t,
    queues,
    /The queue Emails is waiting for smtp:relay\.test\. 554 5\.7\.1 .*denied\. Next attempt in \d+ min .* Show senders/,
  )
  const requeue = `/teams/${team.id}/emails/${id}`
  await operator.post(`${requeue}/requeue`)
  const requeued = await operator.get(requeue)
  shows(t, requeued, 'Queued to be sent again. Delivery is paused (sender smtp:relay.test)')
  const list = `/teams/${team.id}/emails`
  const [counted = {}] = formsTo(await operator.get(`${list}/all`), `${list}/all/requeue`)
  await operator.post(`${list}/all/requeue`, counted)
  const emails = await operator.get(list)
  shows(t, emails, /1 email queued to be sent again\. Delivery is paused \(sender smtp:relay\.test\)/)
  const editor = await signedIn(service, { team: team.id, role: 'editor' })
  const [again = {}] = formsTo(await editor.get(`${list}/all`), `${list}/all/requeue`)
  await editor.post(`${list}/all/requeue`, again)
  shows(t, await editor.get(list), /1 email queued to be sent again\. Delivery is paused\. The next attempt/)
  await operator.post('/operator/senders/resume?key=smtp%3Arelay.test')
  t.notMatch((await operator.get('/operator/queues')).html, /waiting for smtp:relay.test/)
  shows(t, await operator.get('/operator/senders'), /resumed by an operator/)
})

t.test('a queue shows why jobs are deferred: the last responses and the attempts', async (t) => {
  const team = await makeTeam(service)
  const ids = [await sendEmail(service, team), await sendEmail(service, team), await sendEmail(service, team)]
  const [one, two] = ids
  const event = (id: string | undefined, minutes: number, detail: string) =>
    database.query(sql.unsafe`
      insert into email_events (team_id, email_id, event_key, kind, occurred_at, detail)
      values (${team.id}, ${id ?? ''}, decode(md5(${`${id}${minutes}`}), 'hex'), 'deferred',
        now() - ${minutes} * interval '1 minute', ${detail})`)
  await event(one, 20, '421 4.3.2 Closing')
  await event(one, 10, '451 4.7.1 Greylisted')
  await event(two, 10, '451 4.7.1 Greylisted')
  await database.query(sql.unsafe`
    update pgboss.job set start_after = now() + interval '30 minutes 30 seconds'
    where name = 'deliver-email' and id = any(${sql.array(ids, 'uuid')})`)
  const page = await operator.get('/operator/queues/deliver-email')
  shows(t, page, /Oldest due (–|\d+ \w+|under 1 s) Active/)
  shows(
    t,
    page,
    /Why jobs are deferred Last response Jobs Attempts Next attempt Next ID 451 4\.7\.1 Greylisted 2 up to 2 in 30 minutes …\w+ .*No attempt yet \d – in \d+ minutes/,
  )
  await database.query(sql.unsafe`
    update pgboss.job set output = '{"reason": "It can’t be read"}', start_after = now() + interval '1 hour'
    where name = 'ingest-report' and id = (select id from pgboss.job where name = 'ingest-report' limit 1)`)
  const other = await operator.get('/operator/queues/deliver-webhook')
  t.notMatch(other.html, 'Why jobs are deferred')
})

t.test('the overview lists teams above the limits of mailbox providers', async (t) => {
  const team = await makeTeam(service)
  const few = await makeTeam(service)
  const count = (id: string, status: string, counted: number) =>
    database.query(sql.unsafe`
      insert into daily_figures (team_id, channel, day, status, count)
      values (${id}, 'sending', current_date - 1, ${status}, ${counted})`)
  await database.query(sql.unsafe`update teams set name = 'Example Books' where id = ${team.id}`)
  await database.query(sql.unsafe`update teams set name = 'Example Few' where id = ${few.id}`)
  await count(few.id, 'sent', 10)
  await count(few.id, 'hard_bounced', 5)
  await count(team.id, 'sent', 1_000)
  await count(team.id, 'hard_bounced', 50)
  t.notMatch(textOf((await operator.get('/operator')).html), 'Mailbox providers may block')
  await count(team.id, 'complained', 2)
  const page = await operator.get('/operator')
  shows(
    t,
    page,
    /block the team Example Books\. In the last 7 days: 0\.20 % complaints, limit 0\.10 %\. Show team/,
  )
  t.match(page.html, `/operator/teams/${team.id}"`)
  t.notMatch(textOf(page.html), 'Example Few')
  const own = await operator.get(`/operator/teams/${team.id}`)
  shows(
    t,
    own,
    /The last 7 days Hard bounces 5\.0\s% 50 of 1,000, limit 5\.0\s% Complaints 0\.20\s% 2 of 1,000, limit/,
  )
  t.match(own.html, /<li class="bad">\s+<span class="label">Complaints</)
  const teams = await operator.get('/operator/teams?name=example+books')
  shows(t, teams, 'Limits of mailbox providers: 5.0 % and 0.10 %.')
  t.match(teams.html, /data-label="Bounces"><div title="50 of 1,000">5\.0\s%<\/div>/)
  t.match(teams.html, /data-label="Complaints"><div title="2 of 1,000"><span class="tag bad">0\.20\s%</)
})
