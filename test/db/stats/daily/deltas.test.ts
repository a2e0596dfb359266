/** The stats of days and hours, as sums of deltas, equal a recount of the rows. */
import fc from 'fast-check'
import { sql } from 'slonik'
import { number, string } from 'yup'
import { CHANNELS } from '../../../../db/channels/channels.sql.ts'
import { EMAIL } from '../../../../db/channels/email.sql.ts'
import { WHATSAPP } from '../../../../db/channels/whatsapp.sql.ts'
import { requeueMessages } from '../../../../db/delivery/requeue.ts'
import { purgeMessages } from '../../../../db/maintenance/retention/purge.ts'
import { applyEmailEvents } from '../../../../db/messages/emails/apply-events.ts'
import { removeEmail, removeEmails } from '../../../../db/messages/emails/remove.ts'
import { acceptWhatsapp } from '../../../../db/messages/whatsapp/accept.ts'
import { applyWhatsappEvents } from '../../../../db/messages/whatsapp/apply-events.ts'
import { idRow, row } from '../../../../db/postgres/rows.ts'
import { createSecrets } from '../../../../db/process/secrets.ts'
import { foldStats } from '../../../../db/stats/daily/fold.ts'
import { figuresSince, hoursSince } from '../../../../db/stats/daily/stats.sql.ts'
import { SECRET_KEY } from '../../../support/environment.ts'
import { erasePerson } from '../../../support/erase.ts'
import { byCli } from '../../../support/service.ts'
import { openStore } from '../../../support/stored-emails.ts'
import t, { type Test } from '../../../support/tap.ts'
import { makeTemplate } from '../../../support/whatsapp.ts'

const store = await openStore(t)
const { database, queue } = store
const EVER = new Date(0)
const DAY = 86_400_000

const recounted = (team: string, { rows, customers }: (typeof CHANNELS)[number]) =>
  database.any(sql.type(row({ day: string(), status: string(), count: number() }))`
    select (created_at at time zone 'UTC')::date::text as day, status, count(*) as count from ${rows}
    where team_id = ${team} and ${customers} group by 1, 2 order by 1, 2`)

const recountedHours = (team: string, { rows, customers }: (typeof CHANNELS)[number]) =>
  database.any(sql.type(row({ hour: string(), status: string(), count: number() }))`
    select date_trunc('hour', created_at, 'UTC') as hour, status, count(*) as count from ${rows}
    where team_id = ${team} and ${customers} group by 1, 2 order by 1, 2`)

const idsOf = async (team: string, { rows }: (typeof CHANNELS)[number]): Promise<string[]> =>
  (await database.any(sql.type(idRow)`select id from ${rows} where team_id = ${team} order by id`)).map(
    ({ id }) => id,
  )

const command = fc.record({
  do: fc.constantFrom(
    'email',
    'sign-in',
    'whatsapp',
    'report',
    'report',
    'report',
    'requeue',
    'delete',
    'fold',
    'erase',
  ),
  pick: fc.nat(100),
  kind: fc.constantFrom('sent', 'delivered', 'opened', 'bounced', 'complained', 'deferred'),
  seen: fc.constantFrom('sent', 'delivered', 'read', 'failed'),
})
type Command = typeof command extends fc.Arbitrary<infer C> ? C : never

/** A team, and functions that change its messages. */
async function begin() {
  const team = await store.team('pro')
  const template = await makeTemplate({ database, deps: { clock: () => new Date() } as never }, team)
  const secrets = createSecrets(SECRET_KEY)
  const whatsapp = (): Promise<unknown> =>
    database.transaction((tx) =>
      acceptWhatsapp(
        { tx, queue },
        {
          team_id: team,
          items: [
            {
              path: '',
              template_id: template.id,
              to: ['+15555550101', '+15555550102'].map((e164) => ({ e164, country: null })),
              parameters: { 'body:1': 'Ana' },
              idempotency_key: null,
            },
          ],
        },
      ),
    )
  const report = async ({ pick, kind, seen }: Command): Promise<void> => {
    const now = new Date()
    const what = { occurred_at: now, detail: '' }
    const [emails, messages] = [await idsOf(team, EMAIL), await idsOf(team, WHATSAPP)]
    const email_ids = [pick, pick + 1].flatMap((at) => emails[at % emails.length] ?? [])
    const message_id = messages[pick % messages.length]
    await database.transaction(async (tx) => {
      const events = email_ids.map((email_id) => ({
        ...{ team_id: team, email_id, kind, recipient: null, event_key: `${kind}:${pick}` },
        ...what,
      }))
      await applyEmailEvents(tx, events, now)
    })
    if (message_id === undefined) return
    await database.transaction((tx) =>
      applyWhatsappEvents(tx, [
        { team_id: team, message_id, kind: seen, event_key: `${seen}:${pick}`, ...what },
      ]),
    )
  }
  const requeue = async (): Promise<void> => {
    for (const channel of CHANNELS) {
      const refs = (await idsOf(team, channel)).map((id) => ({ team_id: team, id }))
      const at = { queue, now: new Date() }
      await database.transaction((tx) =>
        requeueMessages({ ...at, tx }, channel, refs, { by: 'person', force: true }),
      )
    }
  }
  const remove = async ({ pick }: Command): Promise<void> => {
    const ids = await idsOf(team, EMAIL)
    const [one, other] = [ids[pick % ids.length], ids[(pick + 1) % ids.length]]
    if (one === undefined || other === undefined) return
    if (pick % 2 === 0) await database.transaction((tx) => removeEmails({ tx }, team, [one, other]))
    else await database.transaction((tx) => removeEmail(byCli(tx), team, one)).catch(() => {})
  }
  const act = async (each: Command): Promise<void> => {
    if (each.do === 'email') await store.email(team, undefined, { to: [`user${each.pick % 5}@example.com`] })
    if (each.do === 'sign-in') await store.email(team, undefined, { internal: true })
    if (each.do === 'whatsapp') await whatsapp()
    if (each.do === 'report') await report(each)
    if (each.do === 'requeue') await requeue()
    if (each.do === 'delete') await remove(each)
    if (each.do === 'fold') await foldStats(database)
    if (each.do === 'erase')
      await erasePerson({ database, queue, secrets }, team, `user${each.pick % 5}@example.com`)
  }
  const agrees = async (t: Test, when: string): Promise<void> => {
    for (const channel of CHANNELS) {
      t.strictSame(await figuresSince(database, team, channel, EVER), await recounted(team, channel), when)
      t.strictSame(await hoursSince(database, team, channel, EVER), await recountedHours(team, channel), when)
    }
  }
  return { team, act, agrees }
}

t.test('stats equal a recount after concurrent changes', async (t) => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(command, { minLength: 1, maxLength: 3 }), { maxLength: 12 }),
      async (rounds) => {
        const { act, agrees } = await begin()
        for (const together of rounds) await Promise.all(together.map(act))
        await agrees(t, 'before folding')
        await Promise.all([foldStats(database), foldStats(database)])
        await agrees(t, 'after folding')
      },
    ),
    { numRuns: 12 },
  )
  const deltas = row({ deltas: number() })
  t.match(await database.one(sql.type(deltas)`select count(*) as deltas from figure_deltas`), { deltas: 0 })
})

t.test('triggers count manual changes of rows', async (t) => {
  const { team, act, agrees } = await begin()
  for (const what of ['email', 'email', 'sign-in', 'whatsapp'] as const)
    await act({ do: what, pick: 1, kind: 'sent', seen: 'sent' })
  await database.query(sql.unsafe`update email_states set status = 'opened' where team_id = ${team}`)
  await database.query(sql.unsafe`
    update whatsapp_messages set status = 'read' where team_id = ${team} and position = 0`)
  await agrees(t, 'after updates')
  t.match(await figuresSince(database, team, EMAIL, EVER), [{ status: 'opened', count: 2 }])
  t.match(await figuresSince(database, team, WHATSAPP, EVER), [{ status: 'queued' }, { status: 'read' }])
  await database.query(sql.unsafe`delete from email_states where team_id = ${team}`)
  await database.query(sql.unsafe`
    delete from whatsapp_messages where team_id = ${team} and status = 'queued'`)
  await agrees(t, 'after deletions')
})

t.test('hourly stats are kept for two days', async (t) => {
  const { team, act } = await begin()
  await act({ do: 'email', pick: 1, kind: 'sent', seen: 'sent' })
  const insert = (hours: number) =>
    database.query(sql.unsafe`
      insert into hourly_figures (team_id, channel, hour, status, count)
      values (${team}, 'email', date_trunc('hour', now(), 'UTC') - make_interval(hours => ${hours}), 'sent', 1)`)
  await insert(47)
  await insert(49)
  const hour = sql.fragment`date_trunc('hour', now(), 'UTC') - interval '50 hours'`
  await database.query(sql.unsafe`
    insert into figure_deltas (team_id, channel, hour, status, count) values (${team}, 'email', ${hour}, 'opened', 1)`)
  await foldStats(database)
  t.match(await hoursSince(database, team, EMAIL, EVER), [{ status: 'sent' }, { status: 'queued' }])
})

t.test('deleted messages are subtracted from stats', async (t) => {
  const { team, act, agrees } = await begin()
  await act({ do: 'email', pick: 1, kind: 'sent', seen: 'sent' })
  await act({ do: 'report', pick: 0, kind: 'delivered', seen: 'sent' })
  await foldStats(database)
  await database.query(sql.unsafe`
    update allowances set period_start = now() + interval '1 day', period_end = now() + interval '2 days'
    where team_id = ${team}`)
  const never = { reports: 30, events: null, bodies: null, senders: null, files: 3, figures: null }
  const { messages } = await purgeMessages(database, { ...never, messages: 0 }, new Date(Date.now() + DAY))
  t.equal(messages, 1)
  await agrees(t, 'after forgetting')
  t.strictSame(await figuresSince(database, team, EMAIL, EVER), [])
})
