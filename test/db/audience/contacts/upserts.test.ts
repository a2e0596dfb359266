/** Retention of bulk upserts. */
import { sql } from 'slonik'
import { deleteUpserts, upsertResult } from '../../../../db/audience/contacts/upserts.sql.ts'
import { openStore } from '../../../support/stored-emails.ts'
import t from '../../../support/tap.ts'

t.test('deletes finished upserts in batches, and keeps newer ones', async (t) => {
  const { database, team } = await openStore(t)
  const id = await team()
  const kept = '00000000-0000-7000-8000-000000000001'
  await database.query(sql.unsafe`
    insert into contact_upserts (team_id, id, created_at, finished_at, result)
    select ${id}, gen_random_uuid(), '2026-01-01', '2026-01-01', '{"items": []}' from generate_series(1, 2001)`)
  await database.query(sql.unsafe`
    insert into contact_upserts (team_id, id, created_at, finished_at, result)
    values (${id}, ${kept}, '2026-03-01', '2026-03-01', '{"items": []}')`)
  const before = new Date('2026-02-01T00:00:00Z')
  const past = { finishedBefore: before, createdBefore: before }
  t.equal(await deleteUpserts(database, past), 2001)
  t.equal(await deleteUpserts(database, past), 0)
  t.strictSame(await upsertResult(database, id, kept), { items: [] })
})
