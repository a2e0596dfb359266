/** Pauses from reports start when the provider started them, whenever the report arrives. */
import { sql } from 'slonik'
import { applyReportedPauses } from '../../../../db/delivery/senders/reported-pauses.ts'
import { pausedSenders } from '../../../../db/delivery/senders/senders.sql.ts'
import { listSenders } from '../../../../db/delivery/senders/show.ts'
import { triedSince } from '../../../../db/delivery/tried-since.sql.ts'
import { deleteEndpointPause } from '../../../../db/messages/webhooks/endpoints.sql.ts'
import { stopClock } from '../../../support/clock.ts'
import { EMPTY } from '../../../support/empty.ts'
import { noteTrouble, reserveOne } from '../../../support/senders.ts'
import { startService } from '../../../support/service.ts'
import t from '../../../support/tap.ts'

const NOW = new Date('2026-03-01T12:00:00Z')
const later = (seconds: number): Date => new Date(NOW.getTime() + seconds * 1_000)
const pause = (sender: string, occurred: number, seconds = 300) => ({
  sender,
  seconds,
  reason: `since ${occurred}`,
  occurred_at: later(occurred),
})

const { database } = await startService(t)
await stopClock(database, NOW)
const apply = async (...pauses: ReturnType<typeof pause>[]) =>
  await database.transaction((tx) => applyReportedPauses(tx, pauses))
const paused = async () =>
  (await pausedSenders(database)).map(({ sender, until, reason }) => `${sender} until ${until}: ${reason}`)
/** Creates a sender that has sent something. */
const sender = async (key: string): Promise<void> =>
  void (await reserveOne(database, { key, ceiling: 10 }, [1], 1))

t.test('a pause starts at its cause, the longest stays', async (t) => {
  for (const key of ['a', 'b']) await sender(key)
  const results = await apply(pause('a', -100), pause('a', -10), pause('b', -10, 60), pause('nobody', -10))
  t.equal(results.map(({ kind }) => kind).join(), 'applied,applied,applied,ignored')
  const both = ['a until 2026-03-01T12:04:50.000Z: since -10', 'b until 2026-03-01T12:00:50.000Z: since -10']
  t.same(await paused(), both)
  await apply(pause('a', -10), pause('a', -100), pause('b', -30, 60))
  t.same(await paused(), both, 'repeats and earlier ones change nothing')
  t.match(await reserveOne(database, { key: 'a', ceiling: 10 }, [1], 1), { delays: EMPTY, wait_seconds: 290 })
})

t.test('records each pause once, and another reason again', async (t) => {
  await sender('e')
  const timeline = async () =>
    (await listSenders(database))
      .find(({ key }) => key === 'e')
      ?.events.map(({ time, kind, detail }) => `${time} ${kind} ${detail}`)
  const since = (occurred: number, reason: string) => ({ ...pause('e', occurred), reason })
  await apply(since(-100, 'banned'), since(-90, 'banned'))
  await apply(since(-90, 'banned'), since(-20, 'banned'))
  const first = '2026-03-01T11:58:30.000Z paused banned'
  t.strictSame(await timeline(), [first])
  await apply(since(-200, 'older'), since(-10, 'unpaid'))
  t.strictSame(await timeline(), ['2026-03-01T11:59:50.000Z paused unpaid', first])
})

t.test('a report of an ended pause pauses nothing', async (t) => {
  await sender('c')
  t.match(await apply(pause('c', -300), pause('c', -86_400, 3_600)), [
    { kind: 'ignored', reason: 'the pause that it reports has ended' },
    { kind: 'ignored' },
  ])
  t.notOk((await paused()).some((line) => line.startsWith('c')))
})

t.test('a time ahead of ours counts as now', async (t) => {
  await sender('d')
  await apply(pause('d', 86_400))
  t.ok((await paused()).includes('d until 2026-03-01T12:05:00.000Z: since 86400'))
})

t.test("a failed send doesn't shorten a reported pause", async (t) => {
  await sender('f')
  await apply(pause('f', 0, 3_600))
  const trouble = { kind: 'connection' as const, words: 'ECONNREFUSED', began_at: later(1) }
  const wait = await database.transaction((tx) => noteTrouble(tx, { key: 'f', ceiling: 10 }, trouble))
  t.equal(wait, 3_600, 'what was in flight waits as long')
  t.ok((await paused()).includes('f until 2026-03-01T13:00:00.000Z: since 0'))
})

t.test('deleting a paused sender ends its pause', async (t) => {
  const id = '0190a1b2-0000-7000-8000-000000000001'
  const key = `webhook:${id}`
  await stopClock(database, NOW)
  await database.transaction((tx) =>
    noteTrouble(tx, { key, ceiling: 10 }, { kind: 'connection', words: 'refused', began_at: NOW }),
  )
  await stopClock(database, later(60))
  await deleteEndpointPause(database, id)
  await stopClock(database, later(3_600))
  const tried = { team_id: id, id, tried_since: NOW.toISOString() }
  const since = await triedSince(database, { job: 'deliver-webhook', senderOf: () => key }, [tried])
  t.equal(since.get(id), later(60).toISOString())
})

t.test('a queue paused by 0.1.0 pauses its parts once', async (t) => {
  const id = '0190a1b2-0000-7000-8000-000000000002'
  for (const queue of ['deliver-whatsapp', 'deliver-whatsapp-parts'])
    await database.query(sql.unsafe`
      insert into pause_history (subject, began_at, ended_at)
      values (${`queue:${queue}`}, ${later(10).toISOString()}, ${later(70).toISOString()})`)
  await stopClock(database, later(3_600))
  const tried = { team_id: id, id, tried_since: NOW.toISOString() }
  const since = async () =>
    (await triedSince(database, { job: 'deliver-whatsapp-parts', senderOf: () => 'g' }, [tried])).get(id)
  t.equal(await since(), later(60).toISOString(), 'both rows are one pause')
  await database.query(sql.unsafe`delete from pause_history where subject = 'queue:deliver-whatsapp-parts'`)
  t.equal(await since(), later(60).toISOString())
})
