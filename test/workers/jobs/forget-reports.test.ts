/** Cleaning up raw reports. */
import { endReports, pendingReports, reportsByState } from '../../../db/delivery/reports/reports.sql.ts'
import { storeReports } from '../../../db/delivery/reports/store.ts'
import type { WorkerDeps } from '../../../workers/deps.ts'
import { forgetReports } from '../../../workers/jobs/forget-reports.ts'
import { stopClock } from '../../support/clock.ts'
import { startService } from '../../support/service.ts'
import t from '../../support/tap.ts'

t.test('reports are forgotten after 30 days, parked ones too; pending ones stay', async (t) => {
  const service = await startService(t)
  const { database, deps } = service
  const day = 86_400_000
  const now = new Date()
  for (const name of ['done', 'parked', 'pending']) {
    await database.transaction(async (tx) => {
      const report = { provider: 'smtp' as const, event_key: name, body: Buffer.from(name), received_at: now }
      await storeReports({ tx, queue: deps.queue }, [report])
    })
  }
  const stored = await reportsByState(database, { limit: 10 })
  const idOf = (name: string) => stored.find(({ event_key }) => event_key === name)?.id ?? ''
  await endReports(database, [
    { id: idOf('done'), state: 'done', reason: null },
    { id: idOf('parked'), state: 'parked', reason: 'x' },
  ])
  const forget = async (days: number) => {
    await stopClock(database, new Date(now.getTime() + days * day))
    await forgetReports({ ...deps, retention: { reports: 30 } } as unknown as WorkerDeps)
    return (await reportsByState(database, { limit: 10 })).map(({ event_key }) => event_key).sort()
  }
  t.strictSame(await forget(29), ['done', 'parked', 'pending'])
  t.strictSame(await forget(31), ['pending'])
  t.equal((await pendingReports(database, [idOf('pending')])).length, 1)
})
