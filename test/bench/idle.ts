/** Row 26: the memory and the statements of one web process and one worker that are idle. */
import { setTimeout as sleep } from 'node:timers/promises'
import { startDatabaseProxy } from '../support/database-proxy.ts'
import { atMost, type Figure, upTo } from './figures.ts'
import type { Rig } from './rig.ts'

/** How long they settle, and then how long their statements are counted. */
const SECONDS = upTo(60)

export async function measureIdle(rig: Rig): Promise<Figure[]> {
  const place = await rig.place()
  const stops: (() => void)[] = []
  const proxy = await startDatabaseProxy({ teardown: (stop) => void stops.push(stop) }, place.url)
  const env = { DATABASE_URL: proxy.url }
  const [api, worker] = await Promise.all([
    place.api(env),
    place.worker({ ...env, SMTP_URL: 'smtp://127.0.0.1:25' }),
  ])
  await sleep(SECONDS * 1_000)
  const statements = await proxy.during(() => sleep(SECONDS * 1_000))
  const [web, working] = await Promise.all([api.rss(), worker.rss()])
  await place.close()
  for (const stop of stops) stop()
  const megabytes = (row: string, of: string, ours: number, reference: number): Figure =>
    atMost(1, { row, measure: `memory of ${of} that is idle`, ours, reference, unit: 'MB' })
  return [
    megabytes('26a', 'a web process', web, 95),
    megabytes('26b', 'a worker', working, 105),
    atMost(1, {
      row: '26c',
      measure: 'round trips of both to the database while idle',
      ours: statements / SECONDS,
      reference: 10,
      unit: 'a second',
    }),
  ]
}
