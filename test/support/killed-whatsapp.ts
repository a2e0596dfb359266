/**
 * Sends WhatsApp messages through two worker processes that are killed again and again, while reports of the
 * provider arrive. A report that arrives before a killed job runs again prevents the repeat. The test uses a
 * small run, and test/bench/ a full-size one.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from 'tap'
import { startCloud } from './cloud.ts'
import { makeTeam, type Service, startService, type TestTeam, WHATSAPP_APP_SECRET } from './service.ts'
import { aMessage, makeTemplate, numbers, statusCounts } from './whatsapp.ts'
import { type OurProcess, startProcess, until } from './worker.ts'

/** The maximum number of messages that a worker has in flight (WORKER_CONCURRENCY). */
const IN_FLIGHT = 20

export type Run = {
  rows: number
  kills: number
  /**
   * Milliseconds between kills. With 0, kills depend on the number of arrivals and are spread evenly over the
   * rows.
   */
  every: number
  /** The provider's delay per message, in milliseconds. */
  pause: number
  /** The time limit of the run, in seconds. */
  seconds: number
}

/** Sends a number of messages through the API, in batches. */
async function acceptRows(service: Service, team: TestTeam, rows: number): Promise<void> {
  const { id: template } = await makeTemplate(service, team.id)
  for (let from = 0; from < rows; from += 5_000) {
    const messages = Array.from({ length: Math.ceil(Math.min(5_000, rows - from) / 50) }, (_, item) =>
      aMessage(template, { to: numbers(Math.min(50, rows - from - item * 50), from + item * 50) }),
    )
    const { body } = await service.call('POST', '/v1/whatsapp/messages/batch', {
      key: team.key,
      body: { messages },
    })
    if (body.data.some((item: { error?: unknown }) => item.error)) throw new Error(JSON.stringify(body))
  }
}

/** Keeps two workers running and kills the older one again and again. @returns how many had arrived at each kill. */
async function killWorkers(
  t: Test,
  env: Record<string, string>,
  { rows, kills, every, seconds }: Run,
  arrived: () => number,
): Promise<number[]> {
  const start = (): Promise<OurProcess> => startProcess(t, 'workers/main.ts', env)
  const workers = [await start(), await start()]
  const at_kills: number[] = []
  for (let kill = 0; kill < kills; kill++) {
    const enough = (rows * (kill + 1)) / (kills + 2)
    if (every > 0) await sleep(every)
    else await until('some have arrived', () => arrived() >= enough, seconds)
    const victim = workers.shift()
    victim?.kill('SIGKILL')
    await victim?.exited
    at_kills.push(arrived())
    workers.push(await start())
  }
  return at_kills
}

/**
 * Accepts the rows, then kills workers while they deliver. Asserts that none is lost and that only sends in
 * flight repeat.
 * @returns the results.
 */
export async function deliverThroughKills(t: Test, run: Run): Promise<string> {
  const { rows, kills, pause, seconds } = run
  const service = await startService(t)
  const team = await makeTeam(service, { whatsapp_limit: rows })
  const cloud = await startCloud(t, {
    script: {
      onMessage: async () => void (await sleep(pause)),
      reports: () => [{ status: 'sent' }, { status: 'delivered' }],
    },
    report_pause: 50,
    webhook: { url: `${service.base}/hooks/whatsapp`, app_secret: WHATSAPP_APP_SECRET },
  })
  await acceptRows(service, team, rows)
  const began = Date.now()
  const env = { DATABASE_URL: service.url, SMTP_URL: 'smtp://127.0.0.1:9', ...cloud.env }
  const at_kills = await killWorkers(t, env, run, () => cloud.messages().length)
  const counts = () => statusCounts(service, team.id)
  await until('all are delivered', async () => (await counts()).delivered === rows, seconds)
  const arrived = cloud.messages().map(({ body }) => String(body.biz_opaque_callback_data))
  const repeats = arrived.length - new Set(arrived).size
  t.equal(new Set(arrived).size, rows, 'none lost')
  t.ok(repeats <= kills * IN_FLIGHT, `${repeats} repeats after ${kills} kills`)
  t.equal((await counts()).untaken, 0, 'every row knows that it was taken')
  t.ok((at_kills[0] ?? rows) < rows, `kills came in mid-delivery: ${at_kills.join(', ')} had arrived`)
  return `${rows} rows, ${kills} kills at ${at_kills.join(', ')}, ${repeats} repeats, ${Math.round((Date.now() - began) / 1_000)} s`
}
