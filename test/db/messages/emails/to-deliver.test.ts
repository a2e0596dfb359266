/** A worker reads emails by key, whatever statistics the planner has. */
import { sql } from 'slonik'
import { emailsToDeliver } from '../../../../db/messages/emails/outgoing.sql.ts'
import { storeEmails, storeTeam } from '../../../support/reports.ts'
import { tuplesRead } from '../../../support/rows.ts'
import { startService } from '../../../support/service.ts'
import t from '../../../support/tap.ts'

const service = await startService(t)

t.test('reads a batch by key, even with outdated statistics', async (t) => {
  const team = await storeTeam(service)
  const to = (count: number) => Array.from({ length: count }, () => ['someone@example.org'])
  await storeEmails(service, team, to(500), { status: 'sent' })
  await service.database.query(sql.unsafe`analyze accepted_emails, email_states`)
  const ids = await storeEmails(service, team, to(500))
  const refs = ids.slice(0, 3).map((email_id) => ({ team_id: team, email_id }))
  for (const table of ['accepted_emails', 'email_states']) {
    const read = await tuplesRead(service, table, async (tx) => {
      t.equal((await emailsToDeliver(tx, refs)).length, 3)
    })
    t.equal(read, 3, table)
  }
})
