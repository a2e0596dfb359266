/** What a worker reads before it sends: by key, however many messages a team has and whatever the planner knows. */
import { sql } from 'slonik'
import t from 'tap'
import { number, object } from 'yup'
import { messagesToDeliver } from '../../../db/whatsapp/messages.sql.ts'
import { startService } from '../../support/service.ts'
import { aMessage, makeTemplate, numbers, rowsOf, whatsappClient } from '../../support/whatsapp.ts'

const service = await startService(t)
const { sender, send } = whatsappClient(service)
const readRow = object({ read: number().defined() })

t.test('a lot is read by its keys, without a look at the team’s other messages', async (t) => {
  const { team, key } = await sender()
  const { id: template } = await makeTemplate(service, team.id)
  for (let from = 0; from < 1_000; from += 50) await send(key, aMessage(template, { to: numbers(50, from) }))
  const rows = await rowsOf(service, team.id)
  const refs = rows.slice(0, 3).map(({ id: message_id }) => ({ team_id: team.id, message_id }))
  const read = await service.database.transaction(async (tx) => {
    t.equal((await messagesToDeliver(tx, refs)).length, 3)
    return tx.oneFirst(sql.type(readRow)`
      select coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) as read from pg_stat_xact_user_tables
      where relname = 'whatsapp_messages'`)
  })
  t.equal(read, 3)
})
