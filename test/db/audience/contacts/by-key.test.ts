/** A bulk upsert reads only its own contacts, by key, whatever the planner's statistics are. */
import { sql } from 'slonik'
import { writeContacts } from '../../../../db/audience/contacts/contacts.sql.ts'
import { fillContacts } from '../../../support/contacts.ts'
import { storeTeam } from '../../../support/reports.ts'
import { tuplesRead } from '../../../support/rows.ts'
import { startService } from '../../../support/service.ts'
import t from '../../../support/tap.ts'

const service = await startService(t)

t.test('writes contacts by key, even with outdated statistics', async (t) => {
  const [known, grown] = [await storeTeam(service), await storeTeam(service)]
  await fillContacts(service, known, 20_000)
  await service.database.query(sql.unsafe`analyze contacts`)
  await fillContacts(service, grown, 500)
  const items = new Map([1, 2, 3].map((nth) => [`person${nth}@example.org`, { nth: String(nth) }]))
  const read = await tuplesRead(service, 'contacts', async (tx) => {
    t.equal((await writeContacts(tx, grown, items, new Date())).size, 3)
  })
  t.ok(read <= 12, `${read} rows were read`)
})
