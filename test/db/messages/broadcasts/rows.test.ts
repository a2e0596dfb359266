/** The rows of broadcasts: one email per contact, stats by deltas, and one skip per contact. */
import fc from 'fast-check'
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { number, string } from 'yup'
import { EMAIL } from '../../../../db/channels/email.sql.ts'
import { createVersions } from '../../../../db/content/templates/versions.ts'
import { requeueMessages } from '../../../../db/delivery/requeue.ts'
import { purgeMessages } from '../../../../db/maintenance/retention/purge.ts'
import { type BroadcastRow, broadcastById } from '../../../../db/messages/broadcasts/broadcasts.sql.ts'
import { checkBeforeSend } from '../../../../db/messages/broadcasts/consent.ts'
import { toMailing } from '../../../../db/messages/broadcasts/mailing.ts'
import { insertSkips } from '../../../../db/messages/broadcasts/skips.sql.ts'
import { acceptEmails } from '../../../../db/messages/emails/accept.ts'
import { applyEmailEvents } from '../../../../db/messages/emails/apply-events.ts'
import { removeEmails } from '../../../../db/messages/emails/remove.ts'
import { idRow, row } from '../../../../db/postgres/rows.ts'
import { findStats } from '../../../../db/stats/daily/broadcasts.sql.ts'
import { foldStats } from '../../../../db/stats/daily/fold.ts'
import { EMPTY } from '../../../support/empty.ts'
import { anItem, openStore, type Store } from '../../../support/stored-emails.ts'
import t from '../../../support/tap.ts'

const contactOf = (nth: number) => `0190a1b2-0000-7000-8000-${String(nth).padStart(12, '0')}`

const tokensRow = row({ tokens: number() })

/** Creates a broadcast that is sending. */
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
  const accept = (contactId: string, broadcast = id) =>
    store.database.transaction((tx) =>
      acceptEmails(
        { tx, queue: store.queue, versions: createVersions() },
        { team_id: teamId, domain: null, broadcast_id: broadcast },
        [anItem({ contact_id: contactId })],
      ),
    )
  const figures = async (broadcast = id) =>
    Object.fromEntries(
      (await findStats(store.database, teamId, [broadcast]))
        .filter(({ count }) => count !== 0)
        .map(({ figure, count }) => [figure, count]),
    )
  return { ...store, teamId, id, accept, figures }
}

t.test('broadcast emails have their own queue and no rate limit', async (t) => {
  const { database, teamId, id, accept } = await begin(t)
  const tokens = () => database.oneFirst(sql.type(tokensRow)`select bucket_tokens as tokens from allowances`)
  const before = await tokens()
  const contactId = uuidv7()
  const [outcome] = await accept(contactId)
  t.match(outcome, { kind: 'stored', row: { broadcast_id: id, contact_id: contactId } })
  t.match(await database.one(sql.unsafe`select name from pgboss.job where data ->> 'team_id' = ${teamId}`), {
    name: 'deliver-broadcast',
  })
  t.equal(await tokens(), before)
  t.match(await database.one(sql.unsafe`select emails_used from allowances`), { emails_used: 1 })
  await t.rejects(accept(contactId), /accepted_emails_broadcast_contact/)
  t.match(await database.one(sql.unsafe`select emails_used from allowances`), { emails_used: 1 })
})

/** Returns the stats from a recount of the rows. */
const recounted = async ({ database }: Store, teamId: string, id: string) =>
  Object.fromEntries(
    (
      await database.any(sql.type(row({ figure: string(), count: number() }))`
        select status as figure, count(*) as count from emails where team_id = ${teamId} and broadcast_id = ${id}
        group by status
        union all select 'made', count(*) from emails where team_id = ${teamId} and broadcast_id = ${id}
        union all select 'skipped', count(*) from broadcast_skips where team_id = ${teamId} and broadcast_id = ${id}`)
    )
      .filter(({ count }) => count !== 0)
      .map(({ figure, count }) => [figure, count]),
  )

const command = fc.record({
  do: fc.constantFrom('make', 'make', 'report', 'report', 'delete', 'skip', 'requeue', 'withdraw', 'fold'),
  pick: fc.nat(20),
  kind: fc.constantFrom('sent', 'delivered', 'opened', 'bounced', 'complained'),
})
type Command = typeof command extends fc.Arbitrary<infer C> ? C : never

t.test('broadcast stats equal a recount after concurrent changes', async (t) => {
  const place = await begin(t)
  const { database, queue, accept, teamId } = place
  await database.query(sql.unsafe`delete from upkeep where kind = 'figures'`)
  const act = async (id: string, { do: what, pick, kind }: Command): Promise<void> => {
    const emails = await database.any(sql.type(idRow)`
      select id from emails where team_id = ${teamId} and broadcast_id = ${id} order by id`)
    const picked = [pick, pick + 3].flatMap((at) => emails[at % Math.max(1, emails.length)]?.id ?? [])
    const now = new Date()
    if (what === 'make') await accept(uuidv7(), id)
    if (what === 'report')
      await database.transaction((tx) =>
        applyEmailEvents(
          tx,
          picked.map((email_id) => ({
            ...{ team_id: teamId, email_id, kind, recipient: null, event_key: `${kind}:${pick}` },
            ...{ occurred_at: now, detail: '' },
          })),
          now,
        ),
      )
    if (what === 'delete') await database.transaction((tx) => removeEmails({ tx }, teamId, picked))
    if (what === 'skip') {
      const skip = { team_id: teamId, broadcast_id: id, contact_id: contactOf(pick), email: 'a@example.com' }
      await insertSkips(database, [{ ...skip, reason: 'variables', detail: '' }], now)
    }
    if (what === 'requeue') {
      const refs = emails.map((email) => ({ team_id: teamId, id: email.id }))
      await database.transaction((tx) =>
        requeueMessages({ tx, queue, now }, EMAIL, refs, { by: 'person', force: true }),
      )
    }
    // No contacts exist here, so each email is withdrawn for a deleted contact.
    if (what === 'withdraw')
      await checkBeforeSend(
        database,
        picked.map((email) => ({ team_id: teamId, id: email, unknowns: 0 })),
      )
    if (what === 'fold') await foldStats(database)
  }
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(command, { minLength: 1, maxLength: 3 }), { maxLength: 15 }),
      async (rounds) => {
        const id = await aBroadcast(place, teamId)
        for (const together of rounds) await Promise.all(together.map((each) => act(id, each)))
        const expected = await recounted(place, teamId, id)
        t.strictSame(await place.figures(id), expected, 'before folding')
        await foldStats(database)
        t.strictSame(await place.figures(id), expected, 'after folding')
      },
    ),
    { numRuns: 15 },
  )
  t.match(await database.one(sql.unsafe`select count(*)::integer as deltas from figure_deltas`), {
    deltas: 0,
  })
})

t.test('broadcast stats keep emails that retention has deleted', async (t) => {
  const place = await begin(t)
  const { database, accept, figures } = place
  for (let made = 0; made < 3; made++) await accept(uuidv7())
  await database.query(sql.unsafe`update email_states set status = 'sent'`)
  await accept(uuidv7())
  await foldStats(database)
  t.strictSame(await figures(), { made: 4, queued: 1, sent: 3 })
  await database.query(sql.unsafe`
    update allowances set period_start = now() + interval '1 day', period_end = now() + interval '2 days'`)
  const never = { reports: 30, events: null, bodies: null, senders: null, files: 3, figures: null }
  const { messages } = await purgeMessages(
    database,
    { ...never, messages: 0 },
    new Date(Date.now() + 86_400_000),
  )
  t.equal(messages, 3)
  t.strictSame(await figures(), { made: 4, queued: 1, sent: 3 })
})

t.test('a contact is skipped once, for the first reason', async (t) => {
  const { database, teamId, id } = await begin(t)
  const skip = { team_id: teamId, broadcast_id: id, contact_id: uuidv7(), email: 'a@example.com', detail: '' }
  await insertSkips(database, [{ ...skip, reason: 'variables' }], new Date())
  await insertSkips(database, [{ ...skip, reason: 'cancelled' }], new Date())
  t.match(await database.any(sql.unsafe`select reason from broadcast_skips`), [{ reason: 'variables' }])
  t.match(await broadcastById(database, teamId, id), { state: 'sending', conditions: EMPTY, audience: null })
})

const mailed = {
  ...{ team_id: '01920000-0000-7000-8000-00000000000a', id: 'broadcast', template_id: 'template' },
  ...{ from_address: 'hello@example.com', subject: 'Hi', headers: null, reply_to: '', tags: [] },
} as unknown as BroadcastRow

t.test('an email without topics uses the broadcast as its list', async (t) => {
  const { item } = toMailing({ ...mailed, topic_ids: [] }, [])
  t.match(item.headers, {
    'List-Id': '<broadcast.example.com>',
    'Feedback-ID': 'broadcast:broadcast:broadcast:00000000000a',
  })
  const aimed = toMailing({ ...mailed, topic_ids: ['news', 'offers'] }, [])
  t.match(aimed.item.headers, { 'List-Id': '<news.example.com>' })
})
