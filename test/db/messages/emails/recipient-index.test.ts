/** Queries by recipient use the index, also if no address is repeated and the planner knows none. */
import { sql } from 'slonik'
import { emailsToContact } from '../../../../db/audience/contacts/search.sql.ts'
import { emailsFound } from '../../../../db/messages/emails/search.sql.ts'
import { subjectsOfAddress } from '../../../../db/messages/webhooks/listing.sql.ts'
import type { Tx } from '../../../../db/postgres/pool.ts'
import { insertEmailRows } from '../../../support/email-rows.ts'
import { openStore } from '../../../support/stored-emails.ts'
import t from '../../../support/tap.ts'
import { readsFewer } from '../../../support/touched.ts'

const store = await openStore(t)
const team = await store.team()
const address = 'user77@example.com'

t.before(async () => {
  await insertEmailRows(
    store,
    sql.fragment`
      select ${team} as team_id, ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid as id,
        ${team} as domain_id, 'a@demo.test' as from_address, array['user' || n || '@example.com'] as to_emails,
        '' as subject, '' as html, '[]'::json as tags, 'sent' as status, now() as created_at, '' as reply_to
      from generate_series(1, 20000) n`,
  )
  await store.database.query(sql.unsafe`analyze accepted_emails, email_states`)
})

const reads: Readonly<Record<string, (tx: Tx) => Promise<readonly unknown[]>>> = {
  'a search': (tx) => emailsFound(tx, { team_id: team, recipients: [address], whose: 'all' }, { limit: 2 }),
  'the page of a contact': (tx) => emailsToContact(tx, team, [address], 2),
  'a search of webhooks': (tx) => subjectsOfAddress(tx, team, [address], 2),
}

for (const [name, read] of Object.entries(reads)) {
  t.test(`${name} only reads the emails to an address`, async (t) => {
    t.equal((await readsFewer(t, store.database, 40, read)).result.length, 1)
  })
}
