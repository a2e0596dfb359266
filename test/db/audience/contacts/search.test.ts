/** Interactive search of contacts: by index or in parts, quickly, and never the same contact twice. */
import { sql } from 'slonik'
import { createContact } from '../../../../db/audience/contacts/edit.ts'
import type { ContactSearch } from '../../../../db/audience/contacts/search.sql.ts'
import { searchContacts } from '../../../../db/audience/contacts/search.ts'
import { createTopic } from '../../../../db/audience/contacts/topics.ts'
import { stopClock } from '../../../support/clock.ts'
import { world } from '../../../support/service.ts'
import t from '../../../support/tap.ts'

const { database, deps, team_id: team } = await world(t)
const now = new Date()
await stopClock(database, now)
const news = await createTopic({ tx: database, now, actor: 'cli' }, team, { name: 'News' })

/** Adds a contact. All have the same creation time, so only their IDs order them. */
const add = async (email: string, topic_ids: string[] = []): Promise<void> =>
  void (await database.transaction((tx) =>
    createContact({ ...deps, tx, now: new Date(), actor: null }, team, { email, properties: {}, topic_ids }),
  ))
for (const name of ['ana', 'zoe', 'bob', 'zed', 'eve', 'dan']) await add(`${name}@example.org`)
await add('news@example.org', [news.id])

/** Returns the results of all pages of a search, however often it is interrupted. */
async function found(search: ContactSearch, patience: number): Promise<{ emails: string[]; pages: number }> {
  const emails: string[] = []
  let pages = 0
  for (let before: string | undefined; ; ) {
    const options = { patience, first: 1 }
    const page = await searchContacts(database, team, search, { before, limit: 2 }, options)
    emails.push(...page.rows.map(({ email }) => email))
    pages++
    before = page.reached ?? (page.rows.length === 2 ? page.rows.at(-1)?.id : undefined)
    if (before === undefined) return { emails: emails.sort(), pages }
  }
}

t.test('an interrupted search continues without gaps or repeats', async (t) => {
  const broken = await found({ email: 'z' }, -1)
  t.strictSame(broken.emails, ['zed@example.org', 'zoe@example.org'])
  t.ok(broken.pages > 4, `in ${broken.pages} goes`)
  t.strictSame((await found({ email: 'z' }, 60_000)).emails, broken.emails)
  t.strictSame(await found({ email: 'q' }, 60_000), { emails: [], pages: 1 })
  t.equal((await found({ status: 'subscribed' }, -1)).emails.length, 7)
})

t.test('searches addresses and property values, not property names', async (t) => {
  await database.query(sql.unsafe`
    update contacts set properties = '{"city": "S\u00e3o Paulo", "plan": "50%_off"}' where email = 'eve@example.org'`)
  const eve = { emails: ['eve@example.org'], pages: 1 }
  for (const words of [['paulo'], ['SÃO', 'eve@'], ['50%_']])
    t.strictSame(await found({ words }, 60_000), eve, words.join(' '))
  for (const words of [['city'], ['paulo', 'ana'], ['5_%']])
    t.strictSame((await found({ words }, 60_000)).emails, [], words.join(' '))
  t.ok((await found({ words: ['paulo'] }, -1)).pages > 4, 'broken off, and gone on with')
})

t.test('topics, rare statuses and three letters use an index', async (t) => {
  t.strictSame(await found({ topic: news.id }, -1), { emails: ['news@example.org'], pages: 1 })
  t.strictSame(await found({ topic: news.id, email: 'z' }, -1), { emails: [], pages: 1 })
  t.strictSame(await found({ status: 'complained' }, -1), { emails: [], pages: 1 })
  t.strictSame(await found({ email: 'bob' }, -1), { emails: ['bob@example.org'], pages: 1 })
})
