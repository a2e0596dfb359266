/** The verbs of topics. */
import { Client } from 'pg'
import { adminCli } from '../../support/admin.ts'
import { testDatabase } from '../../support/database.ts'
import t from '../../support/tap.ts'

const { url } = await testDatabase(t)
const cli = adminCli({ DATABASE_URL: url })

t.test('topic create rejects a duplicate name in a team', async (t) => {
  const { id } = await cli.json(['team', 'create', '--name', 'Acme'])
  const news = await cli.json(['topic', 'create', id, '--name', 'News'])
  t.match(news, { id: /^[\da-f-]{36}$/, name: 'News' })
  t.match(await cli.fault(['topic', 'create', id, '--name', 'News']), /^name .*already has .*"News"/)
  t.match(await cli.fault(['topic', 'create', id, '--name', '']), /name must not be empty/)
  t.match(await cli.json(['topic', 'list', id]), [{ id: news.id, name: 'News', created_at: /Z$/ }])
})

t.test("topic delete removes the topic from the team's contacts", async (t) => {
  const { id } = await cli.json(['team', 'create', '--name', 'Acme'])
  const { id: other } = await cli.json(['team', 'create', '--name', 'Other'])
  const news = await cli.json(['topic', 'create', id, '--name', 'News'])
  const tips = await cli.json(['topic', 'create', id, '--name', 'Tips'])

  const client = new Client({ connectionString: url })
  await client.connect()
  t.teardown(() => client.end())
  const contacts = [
    [id, 'a@x.test', [news.id, tips.id]],
    [id, 'b@x.test', [tips.id]],
    [other, 'c@x.test', [news.id]],
  ]
  for (const contact of contacts) {
    await client.query(
      `insert into contacts (team_id, id, email, identity, status, properties, topic_ids, created_at, updated_at)
       values ($1, gen_random_uuid(), $2, $2, 'subscribed', '{}', $3, '2026-01-01', '2026-01-01')`,
      contact,
    )
  }
  t.match(await cli.fault(['topic', 'delete', other, news.id]), /No topic .* in this team./)
  t.same(await cli.json(['topic', 'delete', id, news.id]), { id: news.id, name: 'News', deleted: true })
  const { rows } = await client.query(
    `select email, topic_ids, updated_at > '2026-01-02' as touched from contacts order by email`,
  )
  t.same(rows, [
    { email: 'a@x.test', topic_ids: [tips.id], touched: true },
    { email: 'b@x.test', topic_ids: [tips.id], touched: false },
    { email: 'c@x.test', topic_ids: [news.id], touched: false },
  ])
  t.match(await cli.json(['topic', 'list', id]), [{ name: 'Tips' }])
  t.match(await cli.fault(['topic', 'delete', id, news.id]), /No topic/)
})
