/** Retention: the data that is deleted after a period, and the data that never is. */
import { sql } from 'slonik'
import { array, number, string } from 'yup'
import { saveTemplate } from '../../../../db/content/templates/save.ts'
import { listSenders } from '../../../../db/delivery/senders/show.ts'
import { purgeMessages, type Retention } from '../../../../db/maintenance/retention/purge.ts'
import { emailById } from '../../../../db/messages/emails/emails.sql.ts'
import { row } from '../../../../db/postgres/rows.ts'
import { firstIdAt } from '../../../../db/validation/ids.ts'
import { insertEmailRows } from '../../../support/email-rows.ts'
import { EMPTY } from '../../../support/empty.ts'
import { hold } from '../../../support/held.ts'
import { ownServer } from '../../../support/own-server.ts'
import { KEPT } from '../../../support/retention.ts'
import { pauseSender } from '../../../support/senders.ts'
import { openStore, type Store } from '../../../support/stored-emails.ts'
import t, { type Test } from '../../../support/tap.ts'

const DAY = 86_400_000
const now = new Date()
const daysAgo = (days: number): Date => new Date(now.getTime() - days * DAY)

/** A delivered email from some days ago, with some events. */
async function delivered(store: Store, teamId: string, days: number, events = 1): Promise<string> {
  const { id } = await store.email(teamId, daysAgo(days), { text: 'Hello', headers: { 'X-A': 'b' } })
  await store.database.query(sql.unsafe`update email_states set status = 'delivered' where id = ${id}`)
  await addEvents(store, teamId, id, events)
  return id
}

const addEvents = (store: Store, teamId: string, id: string, count: number) =>
  store.database.query(sql.unsafe`
    insert into email_events (team_id, email_id, event_key, kind, occurred_at, detail)
    select ${teamId}, ${id}, decode(md5(n::text), 'hex'), 'delivered', now(), ''
    from generate_series(1, ${count}::int) n`)

const left = ({ database }: Store) =>
  database.one(sql.type(row({ emails: array(string()), events: number() }))`
    select coalesce(array_agg(id::text order by id), '{}') as emails,
      (select count(*) from email_events) as events from emails`)

async function start(t: Test, make?: typeof ownServer) {
  const store = await openStore(t, make)
  const teamId = await store.team('pro', daysAgo(500))
  return {
    store,
    teamId,
    purge: (days: Partial<Retention>) => purgeMessages(store.database, { ...KEPT, ...days }, now),
  }
}

t.test('keeps everything without a retention setting', async (t) => {
  const { store, teamId, purge } = await start(t)
  await delivered(store, teamId, 450)
  const purged = await purge({})
  t.strictSame(purged, { messages: 0, events: 0, bodies: 0, senders: 0, webhooks: 0, files: 0, figures: 0 })
  t.match(await left(store), { emails: { length: 1 }, events: 1 })
})

t.test("events are deleted by their message's age, in batches", async (t) => {
  const { store, teamId, purge } = await start(t)
  await delivered(store, teamId, 100, 2_500)
  await delivered(store, teamId, 99, 600)
  const young = await delivered(store, teamId, 80, 3)
  t.match(await purge({ events: 90 }), { events: 3_100 })
  t.match(await left(store), { emails: { length: 3 }, events: 3 }, `those of ${young} stay`)
})

t.test('deletes messages with their events, except undelivered and current ones', async (t) => {
  const { store, teamId, purge } = await start(t)
  await delivered(store, teamId, 100)
  const { id: queued } = await store.email(teamId, daysAgo(100))
  const young = await delivered(store, teamId, 80)
  const today = await delivered(store, teamId, 0)
  t.match(await purge({ messages: 90 }), { messages: 1 })
  t.same((await left(store)).emails, [queued, young, today].sort())
  t.equal((await left(store)).events, 2)
  const later = new Date(now.getTime() + 200 * DAY)
  await purgeMessages(store.database, { ...KEPT, messages: 90 }, later)
  t.same((await left(store)).emails, [queued, today].sort(), 'what the quota counts stays always')
})

t.test('keeps events of unfinished messages', async (t) => {
  const { store, teamId, purge } = await start(t)
  const { database } = store
  const { id } = await store.email(teamId, daysAgo(400))
  await addEvents(store, teamId, id, 3)
  const message = '0190a000-0000-7000-8000-000000000001'
  await database.query(sql.unsafe`
    insert into whatsapp_messages (team_id, id, request_id, position, recipient, status, created_at)
    values (${teamId}, ${message}, ${message}, 0, '+15555550101', 'queued', ${sql.timestamp(daysAgo(400))})`)
  await database.query(sql.unsafe`
    insert into whatsapp_events (team_id, message_id, event_key, kind, occurred_at, detail)
    values (${teamId}, ${message}, decode(md5(''), 'hex'), 'gave_up', now(), '')`)
  t.match(await purge({ events: 90 }), { events: 0 })
  await database.query(sql.unsafe`update email_states set provider_message_id = 'taken' where id = ${id}`)
  await database.query(sql.unsafe`update whatsapp_messages set accepted_at = now()`)
  t.match(await purge({ events: 90 }), { events: 4 }, 'what was taken is finished, though it says queued')
  t.match(await purge({ messages: 90 }), { messages: 2 })
})

t.test('scheduled messages age from their scheduled time', async (t) => {
  const { store, teamId, purge } = await start(t)
  const { database } = store
  const message = '0190a000-0000-7000-8000-000000000002'
  const accepted = sql.timestamp(daysAgo(150))
  await database.query(sql.unsafe`
    insert into whatsapp_requests (team_id, id, template_id, parameters, created_at)
    values (${teamId}, ${message}, ${message}, '{"body:1": "Ana"}', ${accepted})`)
  await database.query(sql.unsafe`
    insert into whatsapp_messages (team_id, id, request_id, position, recipient, status, created_at)
    values (${teamId}, ${message}, ${message}, 0, '+15555550101', 'delivered', ${accepted})`)
  const id = await delivered(store, teamId, 150, 3)
  const going = async (days: number, due: boolean) => {
    const time = sql.timestamp(daysAgo(days))
    for (const rows of [sql.fragment`email_states`, sql.fragment`whatsapp_messages`])
      await database.query(sql.unsafe`
        update ${rows} set status = ${due ? 'queued' : 'delivered'}, scheduled_at = ${time}, due_at = ${due ? time : null}`)
  }
  const days = { messages: 90, events: 90, bodies: 90 }
  await going(-1, true)
  t.match(await purge(days), { messages: 0, events: 0, bodies: 0 }, 'it waits for its time')
  await going(1, false)
  t.match(await purge(days), { messages: 0, events: 0, bodies: 0 }, 'it has just gone')
  t.match(await emailById(database, teamId, id), { html: '<p>Hello</p>' })
  await going(91, false)
  t.match(await purge({ bodies: 90 }), { bodies: 2 }, 'a look at what was accepted lately would not find it')
  t.match(await emailById(database, teamId, id), { html: /^$/ })
  t.match(await purge({ bodies: 90 }), { bodies: 0 })
  t.match(await purge({ events: 90 }), { events: 3 })
  t.match(await purge({ messages: 90 }), { messages: 2 })
})

t.test('deletes sender events after their own retention period', async (t) => {
  const { store, purge } = await start(t)
  const { database } = store
  const sender = { key: 'smtp:relay.test', ceiling: 10 }
  await database.transaction((tx) => pauseSender(tx, sender, 60, 'said just now'))
  await database.query(sql.unsafe`
    insert into sender_events (sender, id, kind, occurred_at, detail)
    select 'smtp:relay.test', ${firstIdAt(daysAgo(100))}::uuid, 'paused', now(), '' union all
    select 'smtp:other.test', overlay(${firstIdAt(daysAgo(91))} placing lpad(n::text, 12, '0') from 25)::uuid,
      'recovered', now(), '' from generate_series(1, 2500) n`)
  t.match(await purge({ senders: 101 }), { senders: 0 })
  t.match(await purge({ senders: 90 }), { senders: 2_501 })
  const [shown] = await listSenders(database)
  t.match(shown?.events, [{ detail: 'said just now' }])
})

t.test('purges bodies in place, and moves one row per full page', async (t) => {
  const { store, teamId, purge } = await start(t, ownServer)
  const { database } = store
  const other = await store.team('pro', daysAgo(500))
  for (const table of ['accepted_emails', 'email_states'])
    await database.query(sql.unsafe`alter table ${sql.identifier([table])} set (autovacuum_enabled = false)`)
  /** Returns the page of each email of a day. */
  const places = async (days: number) => {
    const rows = await database.any(sql.type(row({ id: string(), page: number() }))`
      select id, (ctid::text::point)[0]::int as page from accepted_emails
      where created_at = ${sql.timestamp(daysAgo(days))} order by id`)
    return new Map(rows.map(({ id, page }) => [id, page]))
  }
  /** Purges 600 bodies of this size. @returns the former page of each row that moved. */
  const movedFrom = async (days: number, size: number): Promise<number[]> => {
    const rows = sql.fragment`
      select case when n % 3 = 0 then ${other} else ${teamId} end as team_id, 'a@demo.test' as from_address,
        overlay(${firstIdAt(daysAgo(days))} placing lpad(n::text, 12, '0') from 25) as id, ${teamId} as domain_id,
        array['ann@example.com'] as to_emails, 'Hello' as subject, '<p>' || repeat(md5(n::text), ${size}::int) as html,
        '[]'::json as tags, 'delivered' as status, ${sql.timestamp(daysAgo(days))} as created_at, '' as reply_to,
        'call-' || n as http_request_id, 'p-' || n as provider_message_id
      from generate_series(1, 600) n`
    await insertEmailRows(store, rows)
    const before = await places(days)
    t.match(await purge({ bodies: 90 }), { bodies: 600 })
    const after = await places(days)
    t.match(await purge({ bodies: 90 }), { bodies: 0 })
    return [...before].flatMap(([id, page]) => (after.get(id) === page ? [] : [page]))
  }
  const small = await movedFrom(100, 14)
  t.strictSame(small, [], 'each page has space for a purged row, so no index gets a new entry')
  const moved = await movedFrom(95, 15)
  // Moved rows fill the last page, so one more moves from there.
  t.ok(moved.length <= new Set(moved).size + 1, 'one row moves off a full page, and the others use its space')
})

t.test('deletes daily stats in batches', async (t) => {
  const { store, teamId, purge } = await start(t)
  const other = await store.team('free')
  await store.database.query(sql.unsafe`
    insert into daily_figures (team_id, channel, day, status, count)
    select team, channel, current_date - n, status, 1
    from unnest(array[${teamId}, ${other}]::uuid[]) team, unnest(array['email', 'whatsapp']) channel,
      unnest(array['sent', 'delivered']) status, generate_series(0, 699) n`)
  const left = () =>
    store.database.one(sql.type(row({ oldest: number(), rows: number() }))`
      select current_date - min(day) as oldest, count(*) as rows from daily_figures`)
  t.match(await purge({}), { figures: 0 })
  t.match(await purge({ figures: 400 }), { figures: 8 * 299 })
  t.strictSame(await left(), { oldest: 400, rows: 8 * 401 })
  t.match(await purge({ figures: 400 }), { figures: 0 })
})

t.test('deletes a locked row in the next round', async (t) => {
  const { store, teamId, purge } = await start(t)
  const id = await delivered(store, teamId, 100)
  const commit = await hold(t, store.database, (tx) =>
    tx.query(sql.unsafe`select from email_states where id = ${id} for update`),
  )
  t.match(await purge({ messages: 90, bodies: 90 }), { messages: 0, bodies: 0 })
  await commit()
  t.match(await purge({ messages: 90, bodies: 90 }), { messages: 1 })
})

t.test('purges bodies once, and keeps rows, subjects and timelines', async (t) => {
  const { store, teamId, purge } = await start(t)
  const raw = await delivered(store, teamId, 100)
  const parts = { name: 'Welcome', html: '<p>{{name}}</p>', text: '' }
  const { id: template_id } = await saveTemplate({ tx: store.database, now, actor: 'cli' }, teamId, parts)
  const filled = await store.email(teamId, daysAgo(95), {
    html: null,
    template_id,
    variables: { name: 'Ana' },
  })
  await store.database.query(sql.unsafe`update email_states set status = 'sent' where id = ${filled.id}`)
  const young = await delivered(store, teamId, 80)
  t.match(await purge({ bodies: 90 }), { bodies: 2 })
  const email = await emailById(store.database, teamId, raw)
  t.match(email, { html: /^$/, body_text: /^$/, headers: null, subject: 'Hello', status: 'delivered' })
  t.match(await emailById(store.database, teamId, filled.id), { html: null, variables: EMPTY })
  t.match(await emailById(store.database, teamId, young), { html: '<p>Hello</p>' })
  t.match(await purge({ bodies: 90 }), { bodies: 0 })
})
