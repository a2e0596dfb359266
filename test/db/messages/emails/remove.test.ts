/** Deleting an email while a worker records its result leaves nothing behind. */
import { sql } from 'slonik'
import { object, string } from 'yup'
import { applyEmailEvents } from '../../../../db/messages/emails/apply-events.ts'
import { type EmailEvent, storeEmailEvents } from '../../../../db/messages/emails/events.sql.ts'
import { removeEmail } from '../../../../db/messages/emails/remove.ts'
import { countRow } from '../../../../db/postgres/rows.ts'
import { hold } from '../../../support/held.ts'
import { lockWaits } from '../../../support/rows.ts'
import { byCli } from '../../../support/service.ts'
import { openStore } from '../../../support/stored-emails.ts'
import t from '../../../support/tap.ts'
import { giveUpAll, until } from '../../../support/worker.ts'

t.test('a deletion waits for concurrent events and deletes them too', async (t) => {
  const { database, team, email } = await openStore(t)
  const id = await team()
  const { id: email_id } = await email(id)
  const event = (event_key: string): EmailEvent => ({
    team_id: id,
    email_id,
    event_key,
    kind: 'deferred',
    recipient: 'someone@example.com',
    occurred_at: new Date(),
    detail: '451 later',
  })
  await storeEmailEvents(database, [event('first')])
  const now = new Date()
  const commit = await hold(t, database, (tx) => applyEmailEvents(tx, [event('second')], now))
  const deletion = database.transaction((tx) => removeEmail(byCli(tx), id, email_id))
  await until('the deletion waits', async () => (await lockWaits({ database })) > 0)
  const recording = commit((tx) => applyEmailEvents(tx, [event('third')], now))
  await Promise.all([recording, deletion])
  const left = await database.oneFirst(sql.type(countRow)`
    select count(*) as count from email_events where team_id = ${id}`)
  t.equal(left, 0)
})

t.test('deleting a failed email deletes its dead letter', async (t) => {
  const store = await openStore(t)
  const id = await store.team()
  const [gone, kept] = [await store.email(id), await store.email(id)]
  await giveUpAll(store, 'deliver-email')
  await store.database.transaction((tx) => removeEmail(byCli(tx), id, gone.id))
  const left = await store.database.anyFirst(sql.type(object({ of: string().defined() }))`
    select coalesce(source_id, id) as of from pgboss.job where name like 'deliver-email%'`)
  t.strictSame(left, [kept.id, kept.id], 'its dead letter, and for some minutes the job that it was')
})
