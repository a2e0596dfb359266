/** An operator's search over all teams only reads indexes, however many contacts and messages there are. */
import { sql } from 'slonik'
import { teamsOfContactsWith, teamsWithContact } from '../../../../db/audience/contacts/search.sql.ts'
import { teamsSentTo } from '../../../../db/messages/to-numbers.sql.ts'
import { ownServer } from '../../../support/own-server.ts'
import { openPool } from '../../../support/pool.ts'
import t from '../../../support/tap.ts'
import { readsFewer } from '../../../support/touched.ts'

const CONTACTS = 40_000
const MESSAGES = 20_000
const TEAMS = 100

const { url } = await ownServer(t)
const database = await openPool(t, url, { size: 2, statementTimeout: 60_000 })
const team = (n: number): string => `0190a1b2-0000-7000-8000-${String(n).padStart(12, '0')}`
const teamOf = sql.fragment`('0190a1b2-0000-7000-8000-' || lpad((n % ${TEAMS} + 1)::text, 12, '0'))::uuid`

t.before(async () => {
  await database.query(sql.unsafe`
    insert into teams (id, name, created_at)
    select ${teamOf}, 'Team ' || n, now() from generate_series(0, ${TEAMS - 1}) n`)
  await database.query(sql.unsafe`
    insert into contacts (team_id, id, email, identity, status, properties, topic_ids, created_at, updated_at)
    select ${teamOf}, gen_random_uuid(), 'user' || n || '@example.com', 'user' || n || '@example.com', 'subscribed',
      '{}', '{}', now(), now()
    from generate_series(1, ${CONTACTS}::int) n`)
  await database.query(sql.unsafe`
    with requests as (
      insert into whatsapp_requests (team_id, id, template_id, parameters, created_at)
      select ${teamOf}, gen_random_uuid(), gen_random_uuid(), '{}', now() from generate_series(0, ${TEAMS - 1}) n
      returning team_id, id)
    insert into whatsapp_messages (team_id, id, request_id, position, recipient, status, created_at)
    select team_id, gen_random_uuid(), id, m, '+1555' || lpad((m % 5000)::text, 7, '0'), 'sent', now()
    from requests, generate_series(1, ${MESSAGES / TEAMS}) m`)
  await database.query(sql.unsafe`vacuum analyze`)
})

t.test('finds a rare part of an address by an index', async (t) => {
  await readsFewer(t, database, 300, async (tx) => {
    t.strictSame(await teamsOfContactsWith(tx, 'USER34321@', 50), [team((34_321 % TEAMS) + 1)])
  })
})

t.test('returns the first contacts for a common part', async (t) => {
  await readsFewer(t, database, 100, async (tx) => {
    t.equal((await teamsOfContactsWith(tx, 'example', 50)).length, 50)
  })
})

t.test('looks a full address up once per team', async (t) => {
  await readsFewer(t, database, 4 * TEAMS, async (tx) => {
    t.strictSame(await teamsWithContact(tx, 'user34321@example.com'), [team((34_321 % TEAMS) + 1)])
  })
})

t.test('looks messages to a number up once per team', async (t) => {
  await readsFewer(t, database, 8 * TEAMS, async (tx) => {
    const found = await teamsSentTo(tx, '+15550000033', 10)
    t.equal(found.length, TEAMS)
    t.match(found[0], { count: 1, channel: { name: 'whatsapp' } })
  })
})
