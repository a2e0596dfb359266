/** A worker reads messages by key, however many a team has and whatever statistics the planner has. */
import { sql } from 'slonik'
import { messagesToDeliver } from '../../../../db/messages/whatsapp/messages.sql.ts'
import { tuplesRead } from '../../../support/rows.ts'
import { makeTeam, startService } from '../../../support/service.ts'
import t from '../../../support/tap.ts'
import { aMessage, makeTemplate, numbers, rowsOf, whatsappClient } from '../../../support/whatsapp.ts'

const service = await startService(t)
const { sender, send } = whatsappClient(service)

t.test("reads a batch by key, without the team's other messages", async (t) => {
  const { team, key } = await sender()
  const { id: template } = await makeTemplate(service, team.id)
  for (let from = 0; from < 1_000; from += 50) await send(key, aMessage(template, { to: numbers(50, from) }))
  const rows = await rowsOf(service, team.id)
  const refs = rows.slice(0, 3).map(({ id: message_id }) => ({ team_id: team.id, message_id }))
  const read = await tuplesRead(service, 'whatsapp_messages', async (tx) => {
    t.equal((await messagesToDeliver(tx, refs)).length, 3)
  })
  t.equal(read, 3)
})

t.test('reads each message once, however many teams there are', async (t) => {
  for (let count = 0; count < 40; count += 1) await makeTeam(service)
  const { team, key, template } = await sender()
  await send(key, aMessage(template.id, { to: numbers(20) }))
  const refs = (await rowsOf(service, team.id)).map(({ id }) => ({ team_id: team.id, message_id: id }))
  const read = await tuplesRead(service, 'whatsapp_messages', async (tx) => {
    t.equal((await messagesToDeliver(tx, refs)).length, 20)
  })
  t.equal(read, 20)
})

t.test('the default number gets no message of another number', async (t) => {
  const { team, key, template } = await sender()
  await send(key, aMessage(template.id, { to: numbers(2) }))
  const refs = (await rowsOf(service, team.id)).map(({ id }) => ({ team_id: team.id, message_id: id }))
  const [other] = refs
  await service.database.query(sql.unsafe`
    update whatsapp_messages set phone_number_id = '100' where id = ${other?.message_id ?? ''}`)
  const rows = await messagesToDeliver(service.database, refs)
  t.same(
    rows.map(({ message_id }) => message_id),
    [refs[1]?.message_id],
  )
})
