/** Workers read and write rows by key, whatever statistics the planner has and however many rows a team has. */
import { sql } from 'slonik'
import { writeContacts } from '../../db/audience/contacts/contacts.sql.ts'
import { lockEmails } from '../../db/messages/emails/apply-events.sql.ts'
import { applyEmailEvents } from '../../db/messages/emails/apply-events.ts'
import { domainsToDeliver, emailsToDeliver } from '../../db/messages/emails/outgoing.sql.ts'
import {
  lockMessages,
  raiseStatuses,
  recordAcceptances,
} from '../../db/messages/whatsapp/apply-events.sql.ts'
import { messagesToDeliver } from '../../db/messages/whatsapp/messages.sql.ts'
import type { Tx } from '../../db/postgres/pool.ts'
import { fillContacts } from '../support/contacts.ts'
import { storeEmails, storeTeam } from '../support/reports.ts'
import { tuplesRead } from '../support/rows.ts'
import { makeTeam, startService } from '../support/service.ts'
import t from '../support/tap.ts'
import { aMessage, makeTemplate, numbers, rowsOf, whatsappClient } from '../support/whatsapp.ts'

const service = await startService(t)

t.test('changes emails by key, even without statistics', async (t) => {
  const team = await storeTeam(service)
  const ids = await storeEmails(service, team, Array(1_000).fill(['someone@example.org']))
  const now = new Date()
  const sent = { event_key: 'sent', kind: 'sent', recipient: null, occurred_at: now, detail: '' } as const
  const events = ids.slice(0, 3).map((email_id) => ({ ...sent, team_id: team, email_id }))
  const read = await tuplesRead(service, 'email_states', async (tx) => {
    await applyEmailEvents(tx, events, now)
  })
  t.equal(read, 9, 'to lock, to compare and to change them')
})

t.test('reads emails by key, even with outdated statistics', async (t) => {
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
    const locked = await tuplesRead(service, table, async (tx) => {
      t.equal((await lockEmails(tx, [...refs, ...refs])).length, 3)
    })
    t.equal(locked, 3, `${table}, to change them`)
  }
  const ofDomains = await tuplesRead(service, 'accepted_emails', async (tx) => {
    await domainsToDeliver(tx, refs)
  })
  t.equal(ofDomains, 3)
})

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

const { sender, send } = whatsappClient(service)
const accepted = (ref: { team_id: string; message_id: string }) => ({
  ...ref,
  ...{ accepted_at: new Date(), provider_message_id: `wamid.${ref.message_id}`, wa_id: null },
})

t.test("reads messages by key, without the team's others", async (t) => {
  const { team, key } = await sender()
  const { id: template } = await makeTemplate(service, team.id)
  for (let from = 0; from < 1_000; from += 50) await send(key, aMessage(template, { to: numbers(50, from) }))
  const rows = await rowsOf(service, team.id)
  const refs = rows.slice(0, 3).map(({ id: message_id }) => ({ team_id: team.id, message_id }))
  const read = await tuplesRead(service, 'whatsapp_messages', async (tx) => {
    t.equal((await messagesToDeliver(tx, refs)).length, 3)
  })
  t.equal(read, 3)
  const changes: [number, (tx: Tx) => Promise<unknown>][] = [
    [3, (tx) => lockMessages(tx, [...refs, ...refs])],
    [6, (tx) => recordAcceptances(tx, refs.map(accepted))],
    [
      6,
      (tx) =>
        raiseStatuses(
          tx,
          refs.map((ref) => ({ ...ref, status: 'sent' as const })),
        ),
    ],
  ]
  for (const [rows, change] of changes)
    t.equal(await tuplesRead(service, 'whatsapp_messages', async (tx) => void (await change(tx))), rows)
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
  const ids = rows.map(({ message_id }) => message_id)
  t.same(ids, [refs[1]?.message_id])
})
