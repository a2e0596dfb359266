/** The verbs of reports. */
import { endReports } from '../../../db/delivery/reports/reports.sql.ts'
import { storeReports } from '../../../db/delivery/reports/store.ts'
import { adminCli } from '../../support/admin.ts'
import { jobsIn, storedReports } from '../../support/reports.ts'
import { openStore } from '../../support/stored-emails.ts'
import t from '../../support/tap.ts'

t.test('report list, show, replay and drop handle parked reports', async (t) => {
  const store = await openStore(t)
  const cli = adminCli({ DATABASE_URL: store.url })
  t.same(await cli.json(['report', 'list']), [])
  const now = new Date()
  for (const text of ['one', 'two']) {
    const body = Buffer.from(text)
    await store.database.transaction(
      async (tx) =>
        await storeReports({ tx, queue: store.queue }, [
          { provider: 'smtp', event_key: text, body, received_at: now },
        ]),
    )
  }
  const [one, two] = await storedReports(store)
  const id = one?.id ?? ''
  await endReports(store.database, [{ id, state: 'parked', reason: 'unreadable' }])

  t.match(await cli.json(['report', 'list']), [{ id: two?.id, state: 'pending' }, { id }])
  t.match(await cli.json(['report', 'list', '--state', 'pending']), [{ id: two?.id }])
  const parked = await cli.json(['report', 'list', '--parked'])
  t.match(parked, [
    { id, provider: 'smtp', state: 'parked', reason: 'unreadable', bytes: 3, received_at: /Z$/ },
  ])
  t.notOk('body' in parked[0])
  t.strictSame(await cli.json(['report', 'list', '--parked', '--state', 'parked']), parked)
  const both = await cli.fault(['report', 'list', '--parked', '--state', 'done'])
  t.equal(both, '--parked and --state done contradict each other. Leave one out.')
  t.match(await cli.json(['report', 'show', id]), { id, body: 'one', reason: 'unreadable' })

  await store.queue.reenqueue(store.database, 'ingest-report', [])
  t.match(await cli.json(['report', 'replay', id]), { id, state: 'pending', reason: null })
  t.same(await cli.json(['report', 'list', '--parked']), [])
  t.equal((await jobsIn(store, 'ingest-report')).filter(({ report_id }) => report_id === id).length, 1)

  t.match(await cli.fault(['report', 'drop', id]), /is pending\. Only parked reports/)
  await endReports(store.database, [{ id, state: 'parked', reason: 'unreadable still' }])
  t.match(await cli.json(['report', 'drop', id]), { id, state: 'parked', reason: 'unreadable still' })
  t.match(await cli.json(['report', 'list']), [{ id: two?.id }])

  const nobody = '00000000-0000-4000-8000-000000000000'
  for (const verb of ['show', 'replay', 'drop'])
    t.match(await cli.fault(['report', verb, nobody]), /No report/)
})

t.test('report replay and drop accept IDs or a filter', async (t) => {
  const store = await openStore(t)
  const cli = adminCli({ DATABASE_URL: store.url })
  const received =
    '2026-11-01T00:00:00Z 2026-11-02T00:00:00Z 2026-11-03T00:00:00Z 2026-11-04T00:00:00Z'.split(' ')
  for (const [at, time] of received.entries()) {
    const report = {
      provider: at === 3 ? ('ses' as const) : ('smtp' as const),
      event_key: `r${at}`,
      body: Buffer.from('x'),
      received_at: new Date(time),
    }
    await store.database.transaction((tx) => storeReports({ tx, queue: store.queue }, [report]))
  }
  const ids = (await storedReports(store)).map(({ id }) => id)
  const [first = '', second = '', third = '', fourth = ''] = ids
  const park = () =>
    endReports(
      store.database,
      ids.map((id) => ({
        id,
        state: 'parked' as const,
        reason: id === first ? 'Not a message' : 'no such message',
      })),
    )
  const parked = async () =>
    (await cli.json(['report', 'list', '--parked'])).map(({ id }: { id: string }) => id).sort()
  await park()
  t.match(await cli.fault(['report', 'drop']), /Specify reports by their IDs, or use --parked./)
  const both = await cli.fault(['report', 'drop', first, '--parked'])
  t.match(both, /Specify reports by their IDs, or use --parked./)
  t.match(await cli.fault(['report', 'replay', first, '--provider', 'ses']), /need --parked/)
  t.match(await cli.fault(['report', 'drop', '--parked', '--reason', '']), /It must not be empty/)
  t.same(await parked(), ids, 'nothing was dropped')

  t.same(
    await cli.json(['report', 'replay', '--parked', '--reason', 'NO SUCH', '--before', received[2] ?? '']),
    { replayed: 1 },
  )
  t.same(await parked(), [first, third, fourth])
  t.same(await cli.json(['report', 'replay', '--parked']), { replayed: 3 })
  t.same(await parked(), [])
  t.same((await jobsIn(store, 'ingest-report')).map(({ report_id }) => report_id).sort(), ids)
  t.same(await cli.json(['report', 'drop', first, second]), { dropped: 0 }, 'pending ones stay')

  await park()
  const listed = { dropped: 1, dry_run: true, ids: [fourth] }
  t.same(await cli.json(['report', 'drop', '--parked', '--provider', 'ses', '--dry-run']), listed)
  t.same(await cli.json(['report', 'drop', fourth, '--dry-run']), listed)
  t.same(await parked(), ids, 'a dry run drops nothing')
  t.same(await cli.json(['report', 'drop', first, second]), { dropped: 2 })
  t.same(await cli.json(['report', 'drop', '--parked', '--provider', 'ses']), { dropped: 1 })
  t.same(await parked(), [third])
  t.same(await cli.json(['report', 'drop', '--parked']), { dropped: 1 })
  t.same(await cli.json(['report', 'list']), [])
})
