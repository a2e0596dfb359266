/** The database's time in a process, even if queries are slow. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { sql } from 'slonik'
import { watchDatabase } from '../../../../db/maintenance/restore-guard/restore-guard.ts'
import { createServiceClock } from '../../../../db/postgres/service-clock.ts'
import { testDatabase } from '../../../support/database.ts'
import { silentLog } from '../../../support/log.ts'
import { openPool } from '../../../support/pool.ts'
import t from '../../../support/tap.ts'
import { until } from '../../../support/worker.ts'

t.test("a slow query doesn't delay the process's clock", async (t) => {
  const { url } = await testDatabase(t)
  const database = await openPool(t, url, { size: 3 })
  const { clock, end } = await watchDatabase(
    { database, log: silentLog },
    { every: 1_000, hold: 3_000, patience: 30_000 },
  )
  t.teardown(end)
  /** Returns the minimum difference to the database's time, in milliseconds. */
  const beside = async (): Promise<number> => {
    const before = clock().getTime()
    const at = Number(
      await database.oneFirst(sql.unsafe`select extract(epoch from clock_timestamp())::float8 * 1000`),
    )
    return Math.max(before - at, at - clock().getTime(), 0)
  }
  const held = new Client({ connectionString: url })
  await held.connect()
  t.teardown(() => held.end())
  await held.query('begin; lock table process_marks in share mode')
  const waiting = () =>
    database.exists(sql.unsafe`
      select from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query like '%process_marks%'`)
  await until('a look waits', waiting)
  await sleep(1_500)
  await held.query('rollback')
  await until('it has its answer', async () => !(await waiting()))
  for (let looks = 0; looks < 10; looks++) {
    const off = await beside()
    t.ok(off < 500, `${off} ms`)
    await sleep(50)
  }
})

t.test("follows the database's clock within the error of a query", async (t) => {
  const clock = createServiceClock()
  /**
   * Simulates a response with the database's lead when the query starts, received after `after` milliseconds.
   */
  const hears = async (ahead: number, after: number, wanted: (elapsed: number) => number) => {
    const asked = performance.now()
    const at = new Date(asked + ahead)
    await clock.setBy(after === 0 ? Promise.resolve() : sleep(after), () => at)
    const is = clock.now().getTime() - performance.now()
    const expected = wanted(performance.now() - asked)
    t.ok(Math.abs(is - expected) < 400, `${is} ms ahead, not ${expected}`)
  }
  await hears(50_000, 1_000, (elapsed) => 50_000 - elapsed / 2)
  await hears(50_000, 0, () => 50_000)
  await hears(50_000, 1_000, () => 50_000)
  await hears(70_000, 0, () => 70_000)
  await hears(20_000, 1_000, () => 20_000)
  await hears(90_000, 1_000, (elapsed) => 90_000 - elapsed)
})
