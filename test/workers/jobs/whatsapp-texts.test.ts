/** Recipients' WhatsApp texts are never stored by the hook, and only briefly by processes of 0.1.0. */
import { pino } from 'pino'
import { sql } from 'slonik'
import { string } from 'yup'
import { createApp } from '../../../api/app.ts'
import { storeReports } from '../../../db/delivery/reports/store.ts'
import { latestBackgroundJobs } from '../../../db/maintenance/background-jobs/background-jobs.sql.ts'
import { cutPost } from '../../../db/messages/whatsapp/cut-post.ts'
import { nameRow, row } from '../../../db/postgres/rows.ts'
import { logOptions } from '../../../db/process/log.ts'
import { createMetrics } from '../../../db/process/metrics.ts'
import { purgeWhatsappTexts } from '../../../workers/jobs/purge-whatsapp-texts.ts'
import { signedIn } from '../../support/dashboard.ts'
import { settled } from '../../support/ingestion.ts'
import { storedReports } from '../../support/reports.ts'
import { caller, listen, type Service, worldOf } from '../../support/service.ts'
import { shareService } from '../../support/shared-service.ts'
import t, { type Test } from '../../support/tap.ts'
import { makeTemplate, postUpdates, rowsOf, sendWhatsapp } from '../../support/whatsapp.ts'
import { startWorker, until } from '../../support/worker.ts'

const renewed = await shareService(t)

const CANARY = 'canary-of-a-reply-7f31'
const WRITES = {
  from: '15555550142',
  timestamp: '1780000000',
  errors: [{ code: 131051, title: CANARY, message: CANARY, error_data: { details: CANARY } }],
  referral: { body: CANARY },
}
const context = { id: 'wamid.ours', from: CANARY, forwarded: true }
const MESSAGES = [
  { ...WRITES, id: 'wamid.silent', type: 'text', text: { body: CANARY } },
  { ...WRITES, id: 'wamid.image', type: 'image', image: { caption: CANARY } },
  { ...WRITES, id: 'wamid.stop', type: 'text', text: { body: ' Arre\u0302t\u00a0' }, context },
  { ...WRITES, id: 'wamid.button', type: 'button', button: { payload: 'UNSTOP', text: CANARY } },
  { ...WRITES, id: 'wamid.label', type: 'button', button: { payload: CANARY, text: 'STOP' } },
  { ...WRITES, id: 'wamid.cancel', type: 'text', text: { body: 'CANCEL' } },
]

const postWith = (value: object, field = 'messages') => ({
  object: 'whatsapp_business_account',
  entry: [
    {
      ...{ id: '1', time: 1_780_000_000 },
      changes: [{ field, value: { messaging_product: 'whatsapp', ...value } }],
    },
  ],
})
const metadata = { display_phone_number: '15555550100', phone_number_id: '100' }
const contacts = [{ profile: { name: CANARY }, wa_id: '15555550142' }]

/** Returns everything that a dump of the database would contain. */
async function dumped({ database }: Service): Promise<string> {
  const tables = await database.anyFirst(sql.type(nameRow)`
    select format('%I.%I', schemaname, tablename) as name from pg_tables
    where schemaname in ('public', 'pgboss')`)
  const texts: string[] = []
  for (const table of tables) {
    const name = sql.identifier(table.replaceAll('"', '').split('.'))
    const text = await database.oneFirst(sql.type(row({ text: string().nullable() }))`
      select string_agg(t::text, ' ') as text from ${name} t`)
    texts.push(text ?? '')
  }
  return texts.join('\n')
}

const holds = (text: string): boolean =>
  text.includes(CANARY) || text.includes(Buffer.from(CANARY).toString('hex'))

async function begin(t: Test) {
  const { service, team, team_id, key, call } = await worldOf(await renewed())
  const lines: string[] = []
  const log = pino(logOptions({ name: 'test', LOG_LEVEL: 'debug' }), {
    write: (line: string) => void lines.push(line),
  })
  const metrics = createMetrics()
  const hooked = { call: caller(await listen(t, createApp({ ...service.deps, log, metrics }))) }
  const post = (body: object) => postUpdates(hooked, body)
  const ignored = () =>
    Object.fromEntries(
      metrics
        .take()
        .filter(({ figure }) => figure === 'heliograph_whatsapp_ignored_total')
        .map(({ labels, values: [count] }) => [labels, count]),
    )
  /** Stores a post like a web process of 0.1.0. */
  const storeWhole = (body: object | string, event_key: string) =>
    service.database.transaction((tx) =>
      storeReports({ tx, queue: service.deps.queue }, [
        {
          ...{ provider: 'whatsapp' as const, event_key, received_at: service.deps.clock() },
          body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
        },
      ]),
    )
  const allRead = () => until('all are read', () => settled(service))
  return { service, team, team_id, key, call, post, lines, ignored, storeWhole, allRead }
}

t.test('the hook reduces posts, and keeps their statuses', async (t) => {
  const { service, team_id, key, call, post, lines, ignored, allRead } = await begin(t)
  const { id } = await makeTemplate(service, team_id)
  const [message] = await sendWhatsapp({ call }, { key }, id)
  const status = {
    ...{ id: 'wamid.ours', status: 'delivered', timestamp: '1780000000', recipient_id: '15555550142' },
    biz_opaque_callback_data: `${team_id}:${message}`,
    pricing: { billable: true, category: 'utility', type: 'regular', note: CANARY },
  }
  const played = { id: 'wamid.ours', status: 'played' }
  const body = postWith({ metadata, contacts, messages: MESSAGES, statuses: [status, played] })
  t.equal((await post(body)).status, 200)
  t.strictSame(ignored(), { 'kind="message"': 4, 'kind="status"': 1 })
  const [report] = await storedReports(service)
  const stored = JSON.parse(report?.body.toString() ?? '').entry[0].changes[0].value
  t.strictSame(stored.metadata, { phone_number_id: '100' })
  t.strictSame(stored.messages, [
    {
      ...{ id: 'wamid.stop', from: '15555550142', timestamp: '1780000000', type: 'text' },
      ...{ context: { id: 'wamid.ours' }, keyword: 'stop' },
    },
    {
      ...{ id: 'wamid.button', from: '15555550142', timestamp: '1780000000', type: 'button' },
      keyword: 'start',
    },
  ])
  await startWorker(t, service)
  await allRead()
  const pricing = { category: 'utility', type: 'regular', billable: true }
  t.match(await rowsOf(service, team_id), [{ status: 'delivered', pricing }])
  t.notOk(holds(await dumped(service)), 'no table has it')
  t.notOk(holds(lines.join('\n')), 'no log has it')
  t.notOk(lines.join('\n').includes('wamid.silent'))
  const operator = await signedIn(service, { operator: true })
  const page = await operator.get(`/operator/reports/${report?.id}`)
  t.notOk(holds(page.html), 'no page has it')
})

t.test('a post without anything relevant returns 200 and stores nothing', async (t) => {
  const { service, post, ignored } = await begin(t)
  const [silent, image] = MESSAGES
  const left = { status: 200, body: { status: 'ignored' } }
  t.match(await post(postWith({ metadata, contacts, messages: [silent, image] })), left)
  t.match(await post(postWith({ messages: MESSAGES }, 'smb_message_echoes')), left)
  t.match(await post({ object: CANARY, entry: [] }), left)
  t.strictSame(ignored(), { 'kind="message"': 2, 'kind="event"': 1 })
  t.strictSame(await storedReports(service), [])
  const dump = await dumped(service)
  t.notOk(holds(dump) || dump.includes('wamid.silent'))
})

t.test('a worker reduces the complete posts of 0.1.0 web processes', async (t) => {
  const { service, storeWhole, allRead } = await begin(t)
  await storeWhole(postWith({ contacts, messages: MESSAGES.slice(0, 2) }), 'nothing left')
  await storeWhole(postWith({ contacts, messages: MESSAGES }), 'cut')
  await storeWhole(`{"text": "${CANARY}`, 'broken')
  t.ok(holds(await dumped(service)), 'the look can fail')
  await startWorker(t, service)
  await allRead()
  t.notOk(holds(await dumped(service)))
  const left = await storedReports(service)
  t.strictSame(left.map(({ state }) => state).sort(), ['done', 'parked'])
})

t.test('deletes stored texts, again after the last 0.1.0 process', async (t) => {
  const { service, storeWhole } = await begin(t)
  const { database, deps } = service
  const whole = postWith({ contacts, messages: MESSAGES })
  const purge = () => purgeWhatsappTexts({ database, queue: deps.queue })
  const jobs = async () => (await latestBackgroundJobs(database, null, 10)).map(({ result }) => result)
  await storeWhole(whole, 'before')
  const old = 'c1b6f5d8-0000-4000-8000-000000000001'
  await database.query(sql.unsafe`
    insert into processes (id, kind, host, pid, queues, senders, completed, gauges, started_at, seen_at)
    values (${old}, 'web', 'h', 1, '{}', '{}', '{}', '{}', now(), now())`)
  await database.query(sql.unsafe`delete from upkeep where kind = 'whatsapp_texts'`)
  await purge()
  await startWorker(t, service)
  await until('it has run', async () => !holds(await dumped(service)))
  await until('its job has ended', async () => (await jobs())[0]?.changed === 1)
  await storeWhole(whole, 'meanwhile')
  await database.query(sql.unsafe`update reports set state = 'done' where event_key = 'meanwhile'`)
  await purge()
  t.equal((await jobs()).length, 1, 'not while the old process runs')
  await database.query(sql.unsafe`delete from processes where id = ${old}`)
  await purge()
  await until('it has run again', async () => !holds(await dumped(service)))
  await purge()
  t.equal((await jobs()).length, 2, 'no third time')

  await database.query(sql.unsafe`
    insert into processes (id, kind, host, pid, queues, senders, completed, gauges, started_at, seen_at)
    values (${old}, 'web', 'h', 1, '{}', '{}', '{}', '{}', now(), now())`)
  await database.query(sql.unsafe`delete from processes where id = ${old}`)
  await purge()
  t.equal((await jobs()).length, 3, 'a rollback in between counts')
})

t.test('a reduced post stays the same byte for byte', async (t) => {
  const body = Buffer.from(JSON.stringify(postWith({ metadata, contacts, messages: MESSAGES })))
  const once = cutPost(body)?.body
  t.ok(once && cutPost(once)?.body?.equals(once))
})
