/** A small fleet scaled by GET /scale only, with a relay that responds after 50 ms per email. */
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'slonik'
import type { Scale } from '../../db/stats/fleet/scale.ts'
import { sentCount } from '../support/rows.ts'
import { METRICS_TOKEN, sendEmails, world } from '../support/service.ts'
import { startSmtpSink } from '../support/smtp-sink.ts'
import t from '../support/tap.ts'
import { type OurProcess, startProcess, until } from '../support/worker.ts'

const BACKLOG = 400
/** More would only compete for the test machine's cores. */
const MOST = 2

t.test('adds workers for late email, and removes them afterwards', async (t) => {
  const { service, team } = await world(t)
  const { url: SMTP_URL } = await startSmtpSink(t, { onMessage: async () => void (await sleep(50)) })
  await sendEmails(service, team, Array(BACKLOG).fill({}))
  // Makes it late, which the signal measures.
  await service.database.query(sql.unsafe`
    update pgboss.job set start_after = now() - interval '30 seconds' where name = 'deliver-email'`)

  const workers: OurProcess[] = []
  const env = { DATABASE_URL: service.url, SMTP_URL, WORKER_CONCURRENCY: '2', WORKER_QUEUES: 'deliver-email' }
  const scale = async (): Promise<Scale['workers']> =>
    (await service.call('GET', '/scale', { key: METRICS_TOKEN })).body.workers
  t.match(await scale(), { processes: 0, ready: BACKLOG, recommended: 1 })

  await until(
    'the backlog is gone',
    async () => {
      const { recommended } = await scale()
      if (workers.length < Math.min(recommended, MOST))
        workers.push(await startProcess(t, 'workers/main.ts', env))
      return (await sentCount(service, team.id)) === BACKLOG
    },
    240,
  )
  t.ok(workers.length > 1, 'one worker alone was not enough')
  await until('the signal lets workers go', async () => {
    const { latency_seconds, ready, recommended } = await scale()
    return latency_seconds === 0 && ready === 0 && recommended === 1
  })
  for (const worker of workers.slice(1)) worker.kill('SIGTERM')
  const exits = await Promise.all(workers.slice(1).map(({ exited }) => exited))
  t.strictSame(exits, Array(workers.length - 1).fill(0))
  await until('those that are gone are not counted', async () => (await scale()).processes === 1)
})
