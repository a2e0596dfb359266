/** The CLI's verbs about reports. */
import t from 'tap'
import { settleReports } from '../../../db/reports/reports.sql.ts'
import { storeReport } from '../../../db/reports/store.ts'
import { adminCli } from '../../support/admin.ts'
import { jobsIn, storedReports } from '../../support/reports.ts'
import { openStore } from '../../support/stored-emails.ts'

t.test('report list, show, replay and drop tell of what was parked, try it again, and end it', async (t) => {
  const store = await openStore(t)
  const cli = adminCli({ DATABASE_URL: store.url })
  t.same(await cli.json(['report', 'list']), [])
  const now = new Date()
  for (const text of ['one', 'two']) {
    const body = Buffer.from(text)
    await store.database.transaction(
      async (tx) =>
        await storeReport({ tx, queue: store.queue, now }, { provider: 'smtp', event_key: text, body }),
    )
  }
  const [one, two] = await storedReports(store)
  const id = one?.id ?? ''
  await settleReports(store.database, [{ id, state: 'parked', reason: 'unreadable' }])

  t.match(await cli.json(['report', 'list']), [{ id: two?.id, state: 'pending' }, { id }])
  t.match(await cli.json(['report', 'list', '--state', 'pending']), [{ id: two?.id }])
  const parked = await cli.json(['report', 'list', '--parked'])
  t.match(parked, [
    { id, provider: 'smtp', state: 'parked', reason: 'unreadable', bytes: 3, received_at: /Z$/ },
  ])
  t.notOk('body' in parked[0])
  t.strictSame(await cli.json(['report', 'list', '--parked', '--state', 'parked']), parked)
  t.equal(
    await cli.fault(['report', 'list', '--parked', '--state', 'done']),
    '--parked and --state done contradict each other: leave one out',
  )
  t.match(await cli.json(['report', 'show', id]), { id, body: 'one', reason: 'unreadable' })

  await store.queue.reenqueue(store.database, 'ingest-report', [])
  t.match(await cli.json(['report', 'replay', id]), { id, state: 'pending', reason: null })
  t.same(await cli.json(['report', 'list', '--parked']), [])
  t.equal((await jobsIn(store, 'ingest-report')).filter(({ report_id }) => report_id === id).length, 1)

  t.match(await cli.fault(['report', 'drop', id]), /is pending: only parked ones are dropped/)
  await settleReports(store.database, [{ id, state: 'parked', reason: 'unreadable still' }])
  t.match(await cli.json(['report', 'drop', id]), { id, state: 'parked', reason: 'unreadable still' })
  t.match(await cli.json(['report', 'list']), [{ id: two?.id }])

  const nobody = '00000000-0000-4000-8000-000000000000'
  for (const verb of ['show', 'replay', 'drop']) {
    t.match(await cli.fault(['report', verb, nobody]), /there is no report/)
  }
})
