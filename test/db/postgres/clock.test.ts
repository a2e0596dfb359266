/** The time that all processes share. */
import { sql } from 'slonik'
import t from 'tap'
import { followClock } from '../../../db/postgres/clock.ts'
import { openDatabase } from '../../../db/postgres/pool.ts'
import { testDatabase } from '../../support/database.ts'
import { until } from '../../support/worker.ts'

const { url } = await testDatabase(t)
const database = await openDatabase(url, { size: 1 })

/** Puts the database's clock ahead of this machine's. */
const putAhead = (hours: number) =>
  database.query(sql.unsafe`
    create or replace function service_time() returns timestamptz language sql volatile as
      ${sql.literalValue(`select clock_timestamp() + interval '${hours} hours'`)}`)

const hoursAhead = (time: Date): number => Math.round((time.getTime() - Date.now()) / 360_000) / 10

t.test('a process whose clock is wrong goes by the database’s, and follows it', async (t) => {
  await putAhead(1)
  const clock = await followClock(database, { every: 20 })
  t.equal(hoursAhead(clock()), 1)
  await putAhead(-2)
  await until('the clock has followed', () => hoursAhead(clock()) === -2)
})

t.test('time goes on while the database is away', async (t) => {
  const clock = await followClock(database, { every: 20 })
  await database.end()
  const before = clock()
  await new Promise((resolve) => setTimeout(resolve, 100))
  const passed = clock().getTime() - before.getTime()
  t.ok(passed >= 90 && passed < 10_000, `${passed} ms passed`)
})
