/** What the database itself promises of broadcasts: one email for a contact, figures by what moved, skips once. */
import { sql } from 'slonik'
import t from 'tap'
import { v7 as uuidv7 } from 'uuid'
import { number, object } from 'yup'
import { createVersions } from '../../../../db/content/templates/versions.ts'
import { broadcastById } from '../../../../db/messages/broadcasts/broadcasts.sql.ts'
import {
  figuresOf,
  foldMoves,
  insertMoves,
  insertSkips,
} from '../../../../db/messages/broadcasts/skips.sql.ts'
import { acceptEmails } from '../../../../db/messages/emails/accept.ts'
import { anItem, openStore, type Store } from '../../../support/stored-emails.ts'

const tokensRow = object({ tokens: number().defined() })

/** A broadcast that is being sent, whatever its template. */
async function aBroadcast({ database }: Store, teamId: string): Promise<string> {
  const id = uuidv7()
  await database.query(sql.unsafe`
    insert into broadcasts (team_id, id, name, state, from_address, reply_to, subject, template_id, topic_ids,
      exclude_topic_ids, conditions, variables, tags, template_version_id, link_base, created_at, updated_at)
    values (${teamId}, ${id}, 'News', 'sending', 'hello@demo.test', '', 'News', ${uuidv7()}, array[${uuidv7()}::uuid],
      '{}', '[]', '{}', '[]', ${uuidv7()}, 'https://mail.example.com', now(), now())`)
  return id
}

async function begin(t: Parameters<typeof openStore>[0]) {
  const store = await openStore(t)
  const teamId = await store.team()
  const id = await aBroadcast(store, teamId)
  const accept = (contactId: string) =>
    store.database.transaction((tx) =>
      acceptEmails(
        { tx, queue: store.queue, versions: createVersions() },
        { team_id: teamId, domain: null, broadcast_id: id },
        [anItem({ contact_id: contactId })],
      ),
    )
  const figures = async () =>
    Object.fromEntries(
      (await figuresOf(store.database, teamId, [id]))
        .filter(({ count }) => count !== 0)
        .map(({ figure, count }) => [figure, count]),
    )
  return { ...store, teamId, id, accept, figures }
}

t.test(
  'an email of a broadcast waits in its own queue, takes nothing from the rate, and comes once',
  async (t) => {
    const { database, teamId, id, accept } = await begin(t)
    const tokens = () =>
      database.oneFirst(sql.type(tokensRow)`select bucket_tokens as tokens from allowances`)
    const before = await tokens()
    const contactId = uuidv7()
    const [outcome] = await accept(contactId)
    t.match(outcome, { kind: 'stored', row: { broadcast_id: id, contact_id: contactId } })
    t.match(
      await database.one(sql.unsafe`select name from pgboss.job where data ->> 'team_id' = ${teamId}`),
      {
        name: 'deliver-broadcast',
      },
    )
    t.equal(await tokens(), before)
    t.match(await database.one(sql.unsafe`select emails_used from allowances`), { emails_used: 1 })
    await t.rejects(accept(contactId), /emails_broadcast_contact/)
    t.match(await database.one(sql.unsafe`select emails_used from allowances`), { emails_used: 1 })
  },
)

t.test('figures are the sums of what moved, by any door, before and after they are folded', async (t) => {
  const { database, teamId, id, accept, figures } = await begin(t)
  const key = { team_id: teamId, broadcast_id: id }
  for (const contactId of [uuidv7(), uuidv7(), uuidv7()]) {
    await accept(contactId)
    await insertMoves(database, [
      { ...key, figure: 'made', count: 1 },
      { ...key, figure: 'queued', count: 1 },
    ])
  }
  await database.query(sql.unsafe`
    update emails set status = 'sent' where id in (select id from emails order by id limit 2)`)
  await database.query(sql.unsafe`
    update emails set status = 'delivered' where id in (select id from emails order by id limit 1)`)
  const expected = { made: 3, queued: 1, sent: 1, delivered: 1 }
  t.strictSame(await figures(), expected)
  await foldMoves(database, 1)
  t.strictSame(await figures(), expected)
  t.match(await database.one(sql.unsafe`select count(*)::integer as moves from broadcast_moves`), {
    moves: 4,
  })
})

t.test('a contact is skipped once, for the first reason that was found', async (t) => {
  const { database, teamId, id } = await begin(t)
  const skip = { team_id: teamId, broadcast_id: id, contact_id: uuidv7(), email: 'a@example.com', detail: '' }
  await insertSkips(database, [{ ...skip, reason: 'variables' }], new Date())
  await insertSkips(database, [{ ...skip, reason: 'cancelled' }], new Date())
  t.match(await database.any(sql.unsafe`select reason from broadcast_skips`), [{ reason: 'variables' }])
  t.match(await broadcastById(database, teamId, id), { state: 'sending', conditions: [], audience: null })
})
