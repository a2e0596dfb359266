/** Searches emails without an index, quickly and without returning a row twice. */
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { createVersions } from '../../../../db/content/templates/versions.ts'
import { countEmails, matchingEmails } from '../../../../db/messages/emails/bulk.ts'
import { removeEmails } from '../../../../db/messages/emails/remove.ts'
import { type EmailFilter, searchEmails } from '../../../../db/messages/emails/search.ts'
import type { Tx } from '../../../../db/postgres/pool.ts'
import { createSecrets } from '../../../../db/process/secrets.ts'
import { insertEmailRows } from '../../../support/email-rows.ts'
import { SECRET_KEY } from '../../../support/environment.ts'
import { openStore } from '../../../support/stored-emails.ts'
import t from '../../../support/tap.ts'
import { readsFewer } from '../../../support/touched.ts'
import { uuidAt } from '../../../support/uuid-sql.ts'

const UNLIMITED = { patience: Number.POSITIVE_INFINITY }

/** Two months ago. No email is older than the first billing period of its team. */
const LONG_AGO = new Date(Date.now() - 60 * 86_400_000)

t.test('an interrupted search continues without gaps or repeats', async (t) => {
  const store = await openStore(t)
  const team_id = await store.team()
  const ids: string[] = []
  for (const subject of ['one', 'two', 'three', 'four'])
    ids.push((await store.email(team_id, undefined, { subject, tags: ['a'] })).id)
  const deps = { tx: store.database, versions: createVersions(), secrets: createSecrets(SECRET_KEY) }
  const now = new Date()
  const filter = { team_id, tag: 'a', since: new Date(now.getTime() - 30 * 86_400_000), now }
  const found: string[] = []
  let pages = 0
  for (let before: string | undefined; ; pages++) {
    const { rows: emails, reached } = await searchEmails(
      deps,
      filter,
      { before, limit: 3 },
      { patience: 0, first: 1 },
    )
    found.push(...emails.map(({ id }) => id))
    before = reached ?? (emails.length === 3 ? emails.at(-1)?.id : undefined)
    if (before === undefined) break
  }
  t.strictSame(found, ids.reverse())
  t.ok(pages > 3, 'in several goes')
  const none = await searchEmails(deps, { ...filter, tag: 'b' }, { limit: 3 }, UNLIMITED)
  t.strictSame(none, { rows: [], reached: null })
})

t.test('finds the few single emails among many bounces of broadcasts', async (t) => {
  const store = await openStore(t)
  const team_id = await store.team('free', LONG_AGO)
  const now = new Date()
  const { id } = await store.email(team_id, new Date(now.getTime() - 40 * 86_400_000))
  await store.database.query(sql.unsafe`update email_states set status = 'bounced' where id = ${id}`)
  // More than the first part of the search, all of them newer.
  const bounced = sql.fragment`
    select ${team_id} as team_id, ${uuidAt(sql.fragment`now() - make_interval(mins => n)`)} as id,
      (select domain_id from accepted_emails where id = ${id}) as domain_id, 'a@demo.test' as from_address,
      array[n || '@example.com'] as to_emails, '' as subject, '' as html, '[]'::json as tags, 'bounced' as status,
      now() as created_at, '' as reply_to, 1 as size_kb, ${uuidv7()}::uuid as broadcast_id
    from generate_series(1, 600) n`
  await insertEmailRows(store, bounced)
  const deps = { tx: store.database, versions: createVersions(), secrets: createSecrets(SECRET_KEY) }
  const filter = { team_id, status: 'bounced', since: new Date(0), now } as const
  const single = { ...filter, in_broadcast: false }
  const first = await searchEmails(deps, single, { limit: 3 }, { patience: 0, first: 500 })
  t.strictSame(first.rows, [])
  const second = await searchEmails(
    deps,
    single,
    { before: first.reached ?? '', limit: 3 },
    { patience: 0, first: 500 },
  )
  t.match(second, { rows: [{ id }], reached: null })
  t.match(await searchEmails(deps, single, { limit: 3 }, UNLIMITED), { rows: [{ id }], reached: null })
  const recent = { ...single, from: new Date(now.getTime() - 86_400_000) }
  t.strictSame(await searchEmails(deps, recent, { limit: 3 }, UNLIMITED), { rows: [], reached: null })
  const all = await searchEmails(deps, { ...filter, in_broadcast: true }, { limit: 3 }, { patience: 0 })
  t.equal(all.rows.length, 3)
})

t.test("finds all teams' emails of some days, newest first, once", async (t) => {
  const store = await openStore(t)
  const [one, other] = [await store.team('free', LONG_AGO), await store.team('free', LONG_AGO)]
  const now = new Date()
  const hoursAgo = (hours: number): Date => new Date(now.getTime() - hours * 3_600_000)
  const ids: string[] = []
  for (const [team, hours] of [
    [one, 90],
    [other, 60],
    [one, 59],
    [other, 1],
    [one, 0],
  ] as const)
    ids.unshift((await store.email(team, hoursAgo(hours))).id)
  const deps = { tx: store.database, versions: createVersions(), secrets: createSecrets(SECRET_KEY) }
  const find = async (filter: { from?: Date; to?: Date }, limit: number, before?: string) => {
    const wanted = { ...filter, since: new Date(0), now }
    const { rows: emails } = await searchEmails(deps, wanted, { before, limit }, UNLIMITED)
    return emails.map(({ id }) => id)
  }
  t.strictSame(await find({}, 100), ids)
  t.strictSame(await find({}, 3), ids.slice(0, 3))
  t.strictSame(await find({}, 100, ids[2]), ids.slice(3))
  t.strictSame(await find({ from: hoursAgo(61), to: hoursAgo(30) }, 100), ids.slice(2, 4))
})

t.test('the first range includes the newest emails', async (t) => {
  const store = await openStore(t)
  const team_id = await store.team()
  const { id } = await store.email(team_id, undefined, { tags: ['a'] })
  const deps = { tx: store.database, versions: createVersions(), secrets: createSecrets(SECRET_KEY) }
  const now = new Date()
  const since = new Date(now.getTime() - 30 * 86_400_000)
  for (const to of [undefined, new Date(now.getTime() + 86_400_000)]) {
    const { rows: emails } = await searchEmails(
      deps,
      { team_id, tag: 'a', since, now, to },
      { limit: 3 },
      { patience: 0 },
    )
    const found = emails.map((email) => email.id)
    t.strictSame(found, [id])
  }
})

t.test('counts the emails of a broadcast without statistics in linear time', async (t) => {
  const store = await openStore(t)
  const team_id = await store.team()
  const { id } = await store.email(team_id)
  const [broadcast, other] = [uuidv7(), uuidv7()]
  const rows = (broadcast_id: string, status: string, count: number) =>
    insertEmailRows(
      store,
      sql.fragment`
        select ${team_id} as team_id, ${uuidAt(sql.fragment`now() - make_interval(secs => n)`)} as id,
          (select domain_id from accepted_emails where id = ${id}) as domain_id, 'a@demo.test' as from_address,
          array[n || ${`-${status}@example.com`}] as to_emails, '' as subject, '' as html, '[]'::json as tags, ${status} as status,
          now() as created_at, '' as reply_to, 1 as size_kb, ${broadcast_id}::uuid as broadcast_id
        from generate_series(1, ${count}::int) n`,
    )
  await rows(broadcast, 'clicked', 2)
  await rows(broadcast, 'sent', 3)
  await rows(broadcast, 'bounced', 1)
  await rows(other, 'clicked', 1_000)
  const now = new Date()
  const count = async (tx: Tx, filter: EmailFilter) => {
    const at = { tx, now, since: new Date(now.getTime() - 3_600_000) }
    return (await countEmails(at, team_id, { filter, most: 10 })).count
  }
  const of = { broadcast_id: broadcast }
  const { result } = await readsFewer(t, store.database, 3_000, async (tx) => [
    await count(tx, of),
    await count(tx, { ...of, status: 'clicked' }),
    await count(tx, { ...of, status: 'bounced' }),
    await count(tx, { ...of, in_broadcast: false, status: 'clicked' }),
    await count(tx, { ...of, failed: true }),
  ])
  t.strictSame(result, [6, 2, 1, 0, 0])
})

t.test('reports what could not be counted in time', async (t) => {
  const { database, team, email } = await openStore(t)
  const team_id = await team('free', LONG_AGO)
  const now = new Date()
  const since = new Date(now.getTime() - 30 * 86_400_000)
  const old = (await email(team_id, new Date(now.getTime() - 86_400_000), { tags: ['a'] })).id
  const young = (await email(team_id, now, { tags: ['a'] })).id
  const at = { tx: database, now, since }
  const wanted = { filter: { tag: 'a' }, most: 10 }
  const whole = await countEmails(at, team_id, wanted)
  t.match(whole, { count: 2, between: { newest: young, oldest: old }, lookedTo: null, seen: /^\d+:\d+:/ })
  const part = await countEmails(at, team_id, wanted, 0)
  t.match(part, { count: 1, between: { newest: young, oldest: young }, lookedTo: Date })
  t.ok(part.lookedTo && part.lookedTo < now)
  const first = await countEmails(at, team_id, { ...wanted, most: 1 })
  t.match(first, { count: 1, between: { newest: young, oldest: young }, lookedTo: null })
  const queued = await countEmails(at, team_id, { filter: { status: 'queued' }, most: 10 }, 0)
  t.equal(queued.count, 2, 'an index finds these')
  if (part.between === null) return
  const { id: later } = await email(team_id, new Date(now.getTime() + 1_000), { tags: ['a'] })
  const counted = { ...wanted, between: part.between, seen: part.seen }
  const { ids, cursor } = await matchingEmails(database, team_id, counted, { before: undefined, done: 0 })
  t.match({ ids, cursor }, { ids: { length: 1 }, cursor: null })
  t.equal(await database.transaction((tx) => removeEmails({ tx }, team_id, ids)), 1)
  const left = await countEmails(at, team_id, wanted)
  t.match(left, { count: 2, between: { newest: later, oldest: old }, lookedTo: null })
})
