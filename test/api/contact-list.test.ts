/** GET /v1/contacts: pages, filters, and that a deep page skips rows in an index. */
import { sql } from 'slonik'
import { mixed, object } from 'yup'
import { type ContactFilter, contactPage } from '../../db/audience/contacts/contacts.sql.ts'
import { searchContacts } from '../../db/audience/contacts/search.ts'
import { report } from '../support/contacts.ts'
import { openPool } from '../support/pool.ts'
import { makeTeam, type Reply, world } from '../support/service.ts'
import t from '../support/tap.ts'

const { service, call, database, team_id: teamId, key } = await world(t)

const list = (query = ''): Promise<Reply> => call('GET', `/v1/contacts${query}`, { key })
const emails = ({ body }: Reply): string[] => body.data.map((row: { email: string }) => row.email)
const encoded = encodeURIComponent

const GIVEN = [
  ...'a_b@example.org axb@example.org p%q@example.org pq@example.org John.Smith@Example.org'.split(' '),
  ...'smith@bücher.example jane+news@example.com'.split(' '),
]
for (const email of GIVEN) await call('POST', '/v1/contacts', { key, body: { email } })
const NEWEST = GIVEN.toReversed()

// For slow statements on a busy machine.
const patient = await openPool(t, service.url, { size: 1, statementTimeout: 120_000 })

/** Inserts `n` contacts, each a second older than the previous one. */
async function seed(team: string, n: number): Promise<void> {
  await patient.transaction(async (tx) => {
    // The tests' server commits asynchronously, and vacuum only marks rows as visible to all after their
    // commit is written.
    await tx.query(sql.unsafe`set local synchronous_commit = on`)
    await tx.query(sql.unsafe`
      insert into contacts (
        team_id, id, email, identity, status, suppression, properties, topic_ids, created_at, updated_at)
      select ${team}, gen_random_uuid(), 'Person.' || i || '@example.org', 'person.' || i || '@example.org',
        case when i % 1000 = 0 then 'bounced' else 'subscribed' end, case when i % 1000 = 0 then 'bounced' end, '{"plan": "free", "city": "Bergen"}', '{}',
        now() - i * interval '1 second', now()
      from generate_series(1, ${n}::integer) i`)
  })
}

t.test('lists contacts newest first', async (t) => {
  const { status, body } = await list()
  t.equal(status, 200)
  t.strictSame(emails({ body } as Reply), NEWEST)
  t.strictSame(Object.keys(body), ['data'], 'no next_cursor when nothing follows')
  const one = (await call('GET', `/v1/contacts/${encoded('smith@bücher.example')}`, { key })).body
  t.strictSame(body.data[1], one, 'whole contacts')
})

t.test('next_cursor is present only while more pages exist', async (t) => {
  for (const limit of [1, 2, 3, 6, 7, 8]) {
    const seen: string[] = []
    let cursor: string | undefined = '0'
    for (let pages = 0; cursor !== undefined && pages < 10; pages++) {
      const reply: Reply = await list(`?limit=${limit}&cursor=${cursor}`)
      seen.push(...emails(reply))
      const next: unknown = reply.body.next_cursor
      if (next !== undefined) t.strictSame(next, String(seen.length), 'a string, an integer offset')
      cursor = next as string | undefined
    }
    t.strictSame(seen, NEWEST, `pages of ${limit}`)
  }
  for (const cursor of ['7', '8', '9007199254740991'])
    t.strictSame((await list(`?cursor=${cursor}`)).body, { data: [] }, 'a cursor past the end')
  t.match((await list('?cursor=x')).body.error, { message: /^cursor must be the next_cursor of/ })
})

t.test('limit: default 20, maximum 100', async (t) => {
  const many = await makeTeam(service)
  await seed(many.id, 130)
  const page = async (query: string) => (await call('GET', `/v1/contacts${query}`, { key: many.key })).body
  t.equal((await page('')).data.length, 20)
  t.equal((await page('?limit=100')).data.length, 100)
  t.equal((await page('?limit=100&cursor=100')).data.length, 30)
})

t.test('limit, cursor and status are validated strictly', async (t) => {
  const bad = ['', '0', '101', 'abc', '1.5', '-1', '+5', '1e1', ' 5', '0x5', '５']
  const badCursors = ['', '-1', 'abc', '1.5', '1e9', 'NaN', '9007199254740992', '9223372036854775808', ' 0']
  for (const query of [
    ...bad.map((value) => `limit=${encoded(value)}`),
    ...badCursors.map((value) => `cursor=${encoded(value)}`),
    ...['', 'Subscribed', 'queued', 'toString'].map((value) => `status=${value}`),
    'limit=5&limit=5',
    'email=%00',
  ]) {
    const { status, body } = await list(`?${query}`)
    t.strictSame([status, body.error?.code], [400, 'bad_request'], query)
  }
  t.strictSame(emails(await list('?limit=7&unknown=1&other=%00')), NEWEST, 'unknown parameters are ignored')
})

t.test('email matches a literal substring, ignoring case', async (t) => {
  for (const [substring, found] of [
    ['SMITH', ['smith@bücher.example', 'John.Smith@Example.org']],
    [
      '@example.org',
      ['John.Smith@Example.org', 'pq@example.org', 'p%q@example.org', 'axb@example.org', 'a_b@example.org'],
    ],
    ['BÜCHER', ['smith@bücher.example']],
    ['_', ['a_b@example.org']],
    ['%', ['p%q@example.org']],
    ['a_b', ['a_b@example.org']],
    ['p%q', ['p%q@example.org']],
    ['\\', []],
    ['a\\_b', []],
    ['e+n', ['jane+news@example.com']],
    ['', NEWEST],
    ["'; drop table contacts; --", []],
  ] as const) {
    t.strictSame(emails(await list(`?email=${encoded(substring)}`)), found, substring)
  }
})

t.test('status can be combined with email', async (t) => {
  await call('POST', '/v1/contacts/pq@example.org/unsubscribe', { key })
  await report(service, { id: teamId }, 'axb@example.org', 'bounced')
  t.strictSame(emails(await list('?status=unsubscribed')), ['pq@example.org'])
  t.strictSame(emails(await list('?status=bounced')), ['axb@example.org'])
  t.strictSame(emails(await list('?status=complained')), [])
  t.equal(emails(await list('?status=subscribed')).length, 5)
  t.strictSame(emails(await list('?status=subscribed&email=smith&limit=1')), ['smith@bücher.example'])
  t.strictSame((await list('?status=subscribed&email=smith&limit=1')).body.next_cursor, '1')
  t.strictSame((await list('?status=subscribed&email=smith&limit=1&cursor=1')).body.next_cursor, undefined)
  t.strictSame(emails(await list('?status=bounced&email=smith')), [])
})

type Plan = {
  'Node Type': string
  'Index Name'?: string
  'Heap Fetches'?: number
  'Actual Rows': number
  Plans?: Plan[]
}
const planRow = object({ 'QUERY PLAN': mixed<{ Plan: Plan; 'Execution Time': number }[]>().defined() })

/** Returns the nodes of a page's plan, and its time in milliseconds. */
async function explain(team: string, filter: ContactFilter, offset: number) {
  const page = contactPage(team, filter, { offset, limit: 101 })
  const query = { ...page, sql: `explain (analyze, buffers, format json) ${page.sql}`, parser: planRow }
  const rows = (await database.one(query)) as unknown as {
    'QUERY PLAN': [{ Plan: Plan; 'Execution Time': number }]
  }
  const [{ Plan: root, 'Execution Time': ms }] = rows['QUERY PLAN']
  const flat = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(flat)]
  return { nodes: flat(root), ms }
}

t.test('a deep page of 100,000 contacts uses only an index', async (t) => {
  const large = await makeTeam(service)
  await seed(large.id, 100_000)
  await patient.query(sql.unsafe`vacuum analyze contacts`)
  for (const [filter, offset] of [
    [{}, 99_899],
    [{ status: 'subscribed' }, 99_799],
    [{ email: 'EXAMPLE.org' }, 99_899],
    [{ status: 'subscribed', email: 'person' }, 99_799],
  ] as const) {
    const { nodes, ms } = await explain(large.id, filter, offset)
    const skip = nodes.find((node) => node['Index Name'] === 'contacts_newest')
    const name = JSON.stringify(filter)
    t.match(skip, { 'Node Type': 'Index Only Scan', 'Heap Fetches': 0 }, name)
    const heap = nodes.filter(({ 'Node Type': type }) => /^(Seq|Index|Bitmap Heap) Scan$/.test(type))
    t.ok(
      heap.every((node) => node['Actual Rows'] <= 101),
      `${name} reads no other row`,
    )
    t.ok(ms < 5_000, `${name}: ${ms} ms`)
  }
  const rare = await explain(large.id, { email: 'person.77777@' }, 0)
  t.ok(
    rare.nodes.some((node) => node['Index Name'] === 'contacts_email_substring'),
    'a rare substring',
  )
  const bounced = await explain(large.id, { status: 'bounced' }, 0)
  t.comment(`rare substring ${rare.ms} ms, rare status ${bounced.ms} ms`)
  const { body } = await call('GET', '/v1/contacts?limit=100&cursor=99900', { key: large.key })
  t.strictSame([body.data.length, body.next_cursor], [100, undefined])
})

t.test('the email filter finds addresses as entered and in ASCII', async (t) => {
  const team = await makeTeam(service)
  for (const email of ['jo@MÜLLER.example', 'jo@xn--mller-kva.test', 'mller@example.org'])
    await call('POST', '/v1/contacts', { key: team.key, body: { email } })
  const found = async (part: string) =>
    emails(await call('GET', `/v1/contacts?email=${encoded(part)}`, { key: team.key }))
  t.strictSame(await found('xn--mller-kva.EX'), ['jo@MÜLLER.example'])
  t.strictSame(await found('xn--mller-kva'), ['jo@xn--mller-kva.test', 'jo@MÜLLER.example'])
  t.strictSame(await found('MÜLLER'), ['jo@MÜLLER.example'])
  t.strictSame(await found('jo@'), ['jo@xn--mller-kva.test', 'jo@MÜLLER.example'])
  const { rows: contacts } = await searchContacts(database, team.id, { email: 'mller-kva.ex' }, { limit: 5 })
  t.equal(contacts.map(({ email }) => email).join(), 'jo@MÜLLER.example')
})

t.test('rejects paging parameters of other services and suggests cursor', async (t) => {
  for (const query of ['after=x', 'page=2', 'offset=20', 'after=']) {
    const { status, body } = await list(`?${query}`)
    t.strictSame([status, body.error.code], [400, 'bad_request'])
    t.match(body.error.message, /^\w+ is not supported\. Pass the next_cursor .* as cursor/)
  }
})
