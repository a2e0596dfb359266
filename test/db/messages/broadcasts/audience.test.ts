/** The recipients of a broadcast: each operator on real rows, and all contacts that existed at the start. */
import fc from 'fast-check'
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { boolean, string } from 'yup'
import { lockAccount } from '../../../../db/accounts/teams/limits.ts'
import { createContact } from '../../../../db/audience/contacts/edit.ts'
import { audienceSize, lackingMembers, nextMembers } from '../../../../db/messages/broadcasts/audience.sql.ts'
import type { Condition } from '../../../../db/messages/broadcasts/broadcasts.sql.ts'
import { expandStep } from '../../../../db/messages/broadcasts/expand.ts'
import { idRow, row } from '../../../../db/postgres/rows.ts'
import { makeAudience } from '../../../support/audience.ts'
import { beginBroadcasting } from '../../../support/broadcasting.ts'
import { insertEmailRows } from '../../../support/email-rows.ts'
import { hold } from '../../../support/held.ts'
import { lockWaits } from '../../../support/rows.ts'
import { openStore } from '../../../support/stored-emails.ts'
import t from '../../../support/tap.ts'
import { touched } from '../../../support/touched.ts'
import { until } from '../../../support/worker.ts'

const BRAKES = { bounce_percent: 5, complaint_percent: 0.1 }
const TOPIC = uuidv7()
const DECIMAL = /^[+-]?[0-9]+([.][0-9]+)?$/

const store = await openStore(t)
const team = await store.team()

type Properties = Record<string, string>

/** Replaces the team's contacts with these, all in the topic. */
async function contacts(all: readonly Properties[]): Promise<void> {
  await store.database.query(sql.unsafe`delete from contacts where team_id = ${team}`)
  for (const [at, properties] of all.entries()) {
    const email = `c${at}@example.org`
    await store.database.query(sql.unsafe`
      insert into contacts (team_id, id, email, identity, status, properties, topic_ids, created_at, updated_at)
      values (${team}, ${uuidv7()}, ${email}, ${email}, 'subscribed', ${JSON.stringify(properties)},
        ${sql.array([TOPIC], 'uuid')}, now() - interval '1 hour', now())`)
  }
}

const audience = (conditions: Condition[]) => ({
  team_id: team,
  id: uuidv7(),
  topic_ids: [TOPIC],
  exclude_topic_ids: [],
  conditions,
  until: new Date().toISOString(),
})

/** Returns the numbers of the matching contacts, in the order of the scan. */
async function whoFits(...conditions: Condition[]): Promise<number[]> {
  const { members } = await nextMembers(store.database, audience(conditions), {
    after: null,
    look: 1_000,
    limit: 1_000,
  })
  return members.map(({ email }) => Number(/^c(\d+)@/.exec(email)?.[1]))
}

t.test('each operator selects the right contacts', async (t) => {
  await contacts([
    { age: '9', city: 'Graz' },
    { age: '10', city: 'Graz-Umgebung' },
    { age: '-1.5', city: 'Wien' },
    { age: 'ten', city: '' },
    {},
  ])
  const picked = async (property: string, op: Condition['op'], value?: string | string[]) =>
    whoFits(value === undefined ? { property, op } : { property, op, value })
  t.strictSame(await picked('city', 'eq', 'Graz'), [0])
  t.strictSame(await picked('city', 'eq', 'graz'), [], 'with regard to case')
  t.strictSame(await picked('city', 'ne', 'Graz'), [1, 2, 3, 4], 'who has none has another')
  t.strictSame(await picked('city', 'in', ['Graz', 'Wien']), [0, 2])
  t.strictSame(await picked('city', 'exists'), [0, 1, 2, 3])
  t.strictSame(await picked('city', 'missing'), [4])
  t.strictSame(await picked('city', 'contains', 'raz-'), [1])
  t.strictSame(await picked('city', 'contains', '%'), [], 'no pattern')
  t.strictSame(await picked('age', 'gt', '9'), [1, 3], 'numbers as numbers, what is none as text')
  t.strictSame(await picked('age', 'lt', '9.0'), [2])
  t.strictSame(await picked('age', 'gt', '-2'), [0, 1, 2, 3])
  t.strictSame(await picked('age', 'lt', 'tent'), [0, 1, 2, 3], 'as text when either is none')
  t.strictSame(await picked('age', 'gt', 'a'), [3])
  t.strictSame(
    await whoFits(
      { property: 'city', op: 'contains', value: 'Graz' },
      { property: 'age', op: 'gt', value: '9' },
    ),
    [1],
    'all of them',
  )
  t.strictSame(await picked("o'x", 'missing'), [0, 1, 2, 3, 4], 'a name is no part of a statement')
  t.equal(await lackingMembers(store.database, audience([]), ['age', 'city']), 1)
  t.equal(await audienceSize(store.database, audience([{ property: 'age', op: 'exists' }])), 4)
})

/** A second implementation of the operators. */
function means(properties: Properties, { property, op, value }: Condition): boolean {
  const own = Object.hasOwn(properties, property) ? properties[property] : undefined
  const given = Array.isArray(value) ? '' : String(value ?? '')
  if (op === 'missing') return own === undefined
  if (op === 'ne') return own !== given
  if (own === undefined) return false
  if (op === 'exists') return true
  if (op === 'eq') return own === given
  if (op === 'in') return Array.isArray(value) && value.includes(own)
  if (op === 'contains') return own.includes(given)
  const order =
    DECIMAL.test(own) && DECIMAL.test(given)
      ? Math.sign(Number(own) - Number(given))
      : Buffer.compare(Buffer.from(own), Buffer.from(given))
  return op === 'gt' ? order > 0 : order < 0
}

t.test('operators mean the same in the database for any values', async (t) => {
  const word = fc.constantFrom(
    '',
    '0',
    '9',
    '10',
    '-1',
    '+1',
    '1.5',
    '1.',
    '.5',
    '1e3',
    'a',
    'B',
    'é',
    '日',
    '%',
    '_',
    "'",
    '\\',
  )
  const name = fc.constantFrom('age', 'city', '__proto__')
  const properties = fc.dictionary(name, word, { noNullPrototype: true })
  const valued = fc.record({
    property: name,
    op: fc.constantFrom('eq' as const, 'ne' as const, 'contains' as const, 'gt' as const, 'lt' as const),
    value: word,
  })
  const among = fc.record({
    property: name,
    op: fc.constant('in' as const),
    value: fc.array(word, { minLength: 1, maxLength: 3 }),
  })
  const bare = fc.record({ property: name, op: fc.constantFrom('exists' as const, 'missing' as const) })
  const condition: fc.Arbitrary<Condition> = fc.oneof(valued, among, bare)
  await fc.assert(
    fc.asyncProperty(
      fc.array(properties, { minLength: 1, maxLength: 8 }),
      fc.array(fc.array(condition, { minLength: 1, maxLength: 2 }), { minLength: 1, maxLength: 8 }),
      async (all, tries) => {
        await contacts(all)
        for (const conditions of tries) {
          const expected = all.flatMap((own, at) =>
            conditions.every((each) => means(own, each)) ? [at] : [],
          )
          t.strictSame(await whoFits(...conditions), expected, JSON.stringify({ all, conditions }))
        }
      },
    ),
    { numRuns: 30 },
  )
})

t.test('reads few members among many contacts in bounded steps', async (t) => {
  const many = await store.team('pro')
  const [size, look] = [30_000, 1_000]
  const { topic_ids = [] } = await makeAudience(store.database, many, { contacts: size, of_topic: size / 10 })
  await store.database.query(sql.unsafe`vacuum analyze contacts`)
  const wanted = { ...audience([]), team_id: many, topic_ids: topic_ids as string[] }
  const found: string[] = []
  let [after, steps, most]: [string | null, number, number] = [null, 0, 0]
  for (let ended = false; !ended; steps++) {
    const page = { after, look, limit: 200 }
    const { buffers, nodes } = await touched(store.database, (tx) => nextMembers(tx, wanted, page))
    most = Math.max(most, buffers)
    t.notOk(nodes.some((node) => node['Node Type'] === 'Seq Scan' && node['Relation Name'] === 'contacts'))
    const next = await nextMembers(store.database, wanted, page)
    found.push(...next.members.map(({ email }) => email))
    ;({ cursor: after, ended } = next)
  }
  t.equal(found.length, 10)
  t.equal(new Set(found).size, 10)
  t.equal(steps, size / look + 1)
  t.ok(most < 600, `${most} buffers at most for a window of ${look}`)
})

t.test('a late page reads no more rows than the first', async (t) => {
  const many = await store.team('pro')
  const { topic_ids = [] } = await makeAudience(store.database, many, { contacts: 10_000 })
  const wanted = { ...audience([]), team_id: many, topic_ids: topic_ids as string[] }
  const rows = sql.fragment`
    select team_id, gen_random_uuid() as id, gen_random_uuid() as domain_id, 'hello@demo.test' as from_address,
      array[email] as to_emails, 'News' as subject, '<p>News</p>' as html, '[]'::json as tags, now() as created_at,
      '' as reply_to, 'sent' as status, ${wanted.id}::uuid as broadcast_id, id as contact_id
    from (select * from contacts where team_id = ${many} order by id limit 9000) contacts`
  await insertEmailRows(store, rows)
  const after = await store.database.oneFirst(sql.type(idRow)`
    select id from contacts where team_id = ${many} order by id offset 8999 limit 1`)
  const buffersOf = async (id: string, from: string | null) => {
    const page = { after: from, look: 5_000, limit: 200 }
    return (await touched(store.database, (tx) => nextMembers(tx, { ...wanted, id }, page))).buffers
  }
  const first = await buffersOf(uuidv7(), null)
  // Planned without statistics about these emails, and with them.
  const unknown = await buffersOf(wanted.id, after)
  await store.database.query(sql.unsafe`analyze accepted_emails`)
  const known = await buffersOf(wanted.id, after)
  // About thirty pages of an index that received 9,000 emails in any order. Reading all would be hundreds.
  t.ok(Math.max(unknown, known) < first + 60, `${unknown} and ${known} buffers, at first ${first}`)
})

t.test('includes a contact whose creation commits after the start', async (t) => {
  const { service, team, topic_id, contacts, create, post, get } = await beginBroadcasting(t)
  const { database, deps } = service
  await contacts(['first'])
  const id = await create()
  const commit = await hold(t, database, async (tx) => {
    const properties = { name: 'late' }
    await createContact({ ...deps, tx, now: new Date(), actor: null }, team.id, {
      email: 'late@example.org',
      properties,
      topic_ids: [topic_id],
    })
  })
  const started = post(id, 'send')
  const step = () =>
    database.transaction((tx) => expandStep({ ...deps, tx, ahead: 100, brakes: BRAKES }, team.id, id))
  const hasWaited = await Promise.race([
    started.then(() => false),
    until('the start waits', async () => (await lockWaits(service)) > 0).then(() => true),
  ])
  // If the start didn't wait, the scan would miss the contact.
  if (!hasWaited) await step()
  await commit()
  t.equal((await started).status, 202)
  await step()
  await step()
  // The scan has finished. Later contacts aren't included.
  await contacts(['after'])
  await database.query(sql.unsafe`update broadcasts set cursor = null, walked_at = null where id = ${id}`)
  await step()
  const emails = await database.any(sql.type(row({ email: string() }))`
    select to_emails[1] as email from emails where broadcast_id = ${id} order by 1`)
  t.equal(emails.map(({ email }) => email).join(), 'first@example.org,late@example.org')
  t.match((await get(id)).body.stats, { made: 2, skipped: 0 })
})

t.test('locks no account in a step without members', async (t) => {
  const { service, team, contacts, create, post } = await beginBroadcasting(t)
  const { database, deps } = service
  await contacts(['reached'])
  const id = await create()
  t.equal((await post(id, 'send')).status, 202)
  const step = () =>
    database.transaction((tx) => expandStep({ ...deps, tx, ahead: 100, brakes: BRAKES }, team.id, id))
  await step()
  await database.query(sql.unsafe`update broadcasts set cursor = null, walked_at = null where id = ${id}`)
  const release = await hold(t, database, (tx) => lockAccount(tx, team.id))
  t.same(await step(), { kind: 'moved' })
  await release()
  const isEnded = sql.type(row({ ended: boolean() }))`
    select walked_at is not null as ended from broadcasts where id = ${id}`
  t.equal(await database.oneFirst(isEnded), true)
})
