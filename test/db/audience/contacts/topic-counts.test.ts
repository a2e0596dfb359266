/** The counts of topics, as sums of deltas, equal a recount of the contacts. */
import fc from 'fast-check'
import { type QuerySqlToken, sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { number, string } from 'yup'
import { countSubscribers } from '../../../../db/audience/contacts/topic-counts.sql.ts'
import {
  addTopics,
  deleteTopic,
  holdTopics,
  insertTopic,
} from '../../../../db/audience/contacts/topics.sql.ts'
import { leaveTopics } from '../../../../db/audience/subscription/subscription.ts'
import { idRow, row } from '../../../../db/postgres/rows.ts'
import { foldStats } from '../../../../db/stats/daily/fold.ts'
import { openStore } from '../../../support/stored-emails.ts'
import t from '../../../support/tap.ts'

const { database, team: makeTeam } = await openStore(t)

const [TOPICS, CONTACTS] = [3, 6]
const now = () => new Date()
/** IDs in the order of the addresses, in which contacts are locked. Each created contact has its own ID. */
const idOf = (n: number, own = 0) => `0190a1b2-0001-7000-800${n}-${String(own).padStart(12, '0')}`
let made = 0
const email = (n: number) => `user${n}@example.com`

const command = fc.record({
  do: fc.constantFrom(
    'store',
    'store',
    'subscribe',
    'subscribe',
    'replace',
    'leave',
    'remove',
    'drop',
    'fold',
  ),
  contact: fc.nat(CONTACTS - 1),
  topics: fc.uniqueArray(fc.nat(TOPICS - 1), { minLength: 1 }),
})
type Command = typeof command extends fc.Arbitrary<infer C> ? C : never

const recounted = async (team: string) => {
  const rows = await database.any(sql.type(row({ topic_id: string(), count: number() }))`
    select topic_id, count(*) as count from contacts cross join lateral unnest(topic_ids) topic_id
    where team_id = ${team} group by 1 order by 1`)
  return rows.map(({ topic_id, count }) => [topic_id, count])
}

async function begin() {
  const team = await makeTeam('pro')
  const ids = Array.from({ length: TOPICS }, () => uuidv7())
  for (const id of ids) await insertTopic(database, team, { id, name: id }, now())
  const act = async ({ do: what, contact, topics }: Command): Promise<void> => {
    const chosen = topics.flatMap((at) => ids[at] ?? [])
    const list = sql.array(chosen, 'uuid')
    const those = sql.fragment`team_id = ${team} and id >= ${idOf(contact)}`
    const change = (text: QuerySqlToken) =>
      database.transaction(async (tx) => {
        await tx.query(sql.unsafe`select from contacts where ${those} order by id for update`)
        await tx.query(text)
      })
    if (what === 'store')
      await database.query(sql.unsafe`
        insert into contacts (team_id, id, email, identity, status, properties, topic_ids, created_at, updated_at)
        select ${team}, i, e, e, 'subscribed', '{}', ${list}, now(), now()
        from unnest(${sql.array([idOf(contact, ++made), idOf(contact + 1, ++made)], 'uuid')},
          ${sql.array([email(contact), email(contact + 1)], 'text')}) c (i, e)
        on conflict (team_id, identity) do update set topic_ids = excluded.topic_ids`)
    if (what === 'replace') await change(sql.unsafe`update contacts set topic_ids = ${list} where ${those}`)
    if (what === 'remove') await change(sql.unsafe`delete from contacts where ${those}`)
    if (what === 'leave')
      await database
        .transaction((tx) =>
          leaveTopics({ tx, now: now() }, team, email(contact), { topic_ids: chosen, by: 'api' }),
        )
        .catch(() => {})
    if (what === 'drop' && contact === 0) await deleteTopic(database, team, chosen[0] ?? '', now())
    if (what === 'fold') await foldStats(database)
    if (what === 'subscribe')
      await database.transaction(async (tx) => {
        const held = await holdTopics(tx, team, chosen)
        const rows = await tx.any(sql.type(idRow)`select id from contacts where ${those}`)
        const wanted = rows.flatMap(({ id }) => [...held].map((topic_id) => ({ contact_id: id, topic_id })))
        await addTopics(tx, team, wanted, { now: now(), since: now() })
      })
  }
  const counted = async () =>
    [...(await countSubscribers(database, team, ids))].filter(([, count]) => count !== 0).sort()
  return { team, act, counted }
}

t.test('counts equal a recount after concurrent changes of contacts', async (t) => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(command, { minLength: 1, maxLength: 3 }), { maxLength: 10 }),
      async (rounds) => {
        const { team, act, counted } = await begin()
        for (const together of rounds) await Promise.all(together.map(act))
        t.strictSame(await counted(), await recounted(team), 'before folding')
        await Promise.all([foldStats(database), foldStats(database)])
        t.strictSame(await counted(), await recounted(team), 'after folding')
      },
    ),
    { numRuns: 25 },
  )
  const rows = await database.anyFirst(sql.type(row({ rows: number() }))`
    select count(*) as rows from topic_counts group by team_id, topic_id`)
  t.ok(
    rows.every((each) => each === 1),
    'one row for each topic',
  )
})

t.test("a rolled-back change isn't counted", async (t) => {
  const { team, act, counted } = await begin()
  await act({ do: 'store', contact: 0, topics: [0, 1] })
  const undone = new Error('undone')
  await database
    .transaction(async (tx) => {
      await tx.query(sql.unsafe`delete from contacts where team_id = ${team}`)
      throw undone
    })
    .catch((error: unknown) => t.equal(error, undone))
  t.strictSame(await counted(), await recounted(team))
})

t.test('deleting a team deletes its counts', async (t) => {
  const { team, act } = await begin()
  await act({ do: 'store', contact: 0, topics: [0, 1] })
  await database.query(sql.unsafe`delete from teams where id = ${team}`)
  await foldStats(database)
  t.notOk(await database.exists(sql.unsafe`select from topic_counts where team_id = ${team}`))
})
