/** Failed emails have the status of waiting ones, and are found through the failures in their timelines. */
import { sql } from 'slonik'
import { createVersions } from '../../../../db/content/templates/versions.ts'
import { countEmails, matchingEmails } from '../../../../db/messages/emails/bulk.ts'
import { countFailed } from '../../../../db/messages/emails/failed.sql.ts'
import { type EmailFilter, searchEmails } from '../../../../db/messages/emails/search.ts'
import { createSecrets } from '../../../../db/process/secrets.ts'
import { SECRET_KEY } from '../../../support/environment.ts'
import { openStore } from '../../../support/stored-emails.ts'
import t from '../../../support/tap.ts'

const store = await openStore(t)
const { database } = store
const deps = { tx: database, versions: createVersions(), secrets: createSecrets(SECRET_KEY) }
const now = new Date()
const since = new Date(now.getTime() - 30 * 86_400_000)

/** Stores emails, oldest first. @returns their IDs. */
async function emails(team_id: string, count: number): Promise<string[]> {
  const ids: string[] = []
  while (ids.length < count) ids.push((await store.email(team_id)).id)
  return ids
}

const fail = (ids: readonly string[]) =>
  database.query(sql.unsafe`
    insert into email_events (team_id, email_id, event_key, kind, occurred_at, detail)
    select team_id, id, uuid_send(gen_random_uuid()), 'gave_up', clock_timestamp(), '' from email_states
    where id = any(${sql.array([...ids], 'uuid')})`)

const change = (id: string | undefined, to: ReturnType<typeof sql.fragment>) =>
  database.query(sql.unsafe`update email_states set ${to} where id = ${id ?? ''}`)
const REQUEUED = sql.fragment`tries_from = clock_timestamp()`

const find = async (filter: EmailFilter, limit = 10) =>
  (await searchEmails(deps, { ...filter, since, now }, { limit })).rows.map(({ id }) => id)

t.test('an email has failed until it is requeued or sent', async (t) => {
  const [team_id, other] = [await store.team('pro'), await store.team('pro')]
  const [waiting, failed, twice, expired, requeued, sent, again] = await emails(team_id, 7)
  const [foreign = ''] = await emails(other, 1)
  const all = [failed, twice, expired, requeued, sent, again, foreign].flatMap((id) => id ?? [])
  await fail(all)
  await fail([twice ?? ''])
  await change(expired, sql.fragment`expired_at = now()`)
  await change(sent, sql.fragment`status = 'sent', provider_message_id = 'x'`)
  await change(requeued, REQUEUED)
  await change(again, REQUEUED)
  await fail([again ?? ''])
  t.strictSame(await find({ team_id, failed: true }), [again, expired, twice, failed], 'each once')
  t.strictSame(await find({ team_id, status: 'queued', failed: false }), [requeued, waiting])
  t.strictSame(await find({ team_id, status: 'queued' }), [again, requeued, twice, failed, waiting])
  for (const narrow of [{ subject: 'hello' }, { recipient: 'someone@example.com' }, { in_broadcast: false }])
    t.strictSame(await find({ team_id, failed: true, ...narrow }), [again, expired, twice, failed])
  t.strictSame(await find({ team_id, failed: true, subject: 'other' }), [])
  t.strictSame(await find({ team_id, failed: true, in_broadcast: true }), [])
  const count = async (filter: EmailFilter) =>
    (await countEmails({ tx: database, now, since }, team_id, { filter, most: 10 })).count
  t.equal(await count({ failed: true }), 4)
  t.equal(await count({ status: 'queued', failed: false }), 2)
  const counted = (most: number, { from = since, apart = true } = {}) =>
    countFailed(database, team_id, { from, most, apart })
  t.equal(await counted(6), 4)
  t.equal(await counted(5), null, 'six had a failure')
  t.equal(await counted(6, { from: new Date(now.getTime() + 86_400_000) }), 0)
  await database.query(sql.unsafe`
    insert into broadcasts (team_id, id, name, state, from_address, reply_to, subject, template_id, topic_ids, exclude_topic_ids,
      conditions, variables, tags, link_base, created_at, updated_at)
    values (${team_id}, gen_random_uuid(), 'News', 'draft', '', '', '', gen_random_uuid(), '{}', '{}', '[]', '{}', '[]', '', now(), now())`)
  t.equal(await counted(6), null, 'their emails are apart')
  t.equal(await counted(6, { apart: false }), 4)
})

t.test('an interrupted search of failed emails continues without gaps or repeats', async (t) => {
  const team_id = await store.team('pro')
  const ids = await emails(team_id, 5)
  await fail(ids)
  for (const id of ids.slice(2, 4)) await change(id, REQUEUED)
  const found: string[] = []
  let pages = 0
  for (let before: string | undefined; ; pages += 1) {
    const wanted = { team_id, failed: true, since, now }
    const { rows, reached } = await searchEmails(
      deps,
      wanted,
      { before, limit: 2 },
      { patience: 0, first: 1 },
    )
    found.push(...rows.map(({ id }) => id))
    before = reached ?? (rows.length === 2 ? rows.at(-1)?.id : undefined)
    if (before === undefined) break
  }
  t.strictSame(found, [ids[4], ids[1], ids[0]])
  t.ok(pages > 2, 'in several goes')
})

t.test('a bulk action leaves out emails that fail after the count', async (t) => {
  const team_id = await store.team('pro')
  const [first = '', later = '', again = '', gone = '', last = ''] = await emails(team_id, 5)
  await fail([first, again, gone, last])
  await change(again, REQUEUED)
  for (const [narrow, patience] of [
    [{}, 1_000],
    [{ subject: 'hello' }, 1_000],
    [{}, Number.POSITIVE_INFINITY],
  ] as const) {
    const filter = { failed: true, ...narrow }
    const counted = await countEmails({ tx: database, now, since }, team_id, { filter, most: 10 }, patience)
    t.match(counted, { count: 3, between: { newest: last, oldest: first }, lookedTo: null })
    const { between, seen } = counted
    if (between === null) return
    const matching = { filter, between, most: 3, seen }
    const undone = new Error('undone')
    await database
      .transaction(async (tx) => {
        await tx.query(sql.unsafe`
          insert into email_events (team_id, email_id, event_key, kind, occurred_at, detail)
          select ${team_id}, id, uuid_send(gen_random_uuid()), 'gave_up', clock_timestamp(), ''
          from unnest(${sql.array([later, again], 'uuid')}) id`)
        await tx.query(sql.unsafe`
          update email_states set status = 'sent', provider_message_id = 'x' where id = ${gone}`)
        const { ids } = await matchingEmails(tx, team_id, matching, { before: undefined, done: 0 })
        t.strictSame(ids, [last, first])
        throw undone
      })
      .catch((error: unknown) => t.equal(error, undone))
  }
})
