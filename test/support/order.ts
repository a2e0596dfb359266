/**
 * Chooses the test files of a run and their order. The slowest files start first, so that no process is still
 * busy with one at the end. Most of them wait for pauses, heartbeats and dead workers.
 */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** The slowest files of a complete run, for a checkout without measured times. */
export const SLOWEST = [
  'test/api/dashboard/looks.test.ts',
  'test/chaos/short.test.ts',
  'test/start.test.ts',
  'test/workers/channels/deliver-trouble.test.ts',
  'test/api/dashboard/live.test.ts',
  'test/workers/channels/deliver-email.test.ts',
  'test/estimates.test.ts',
  'test/workers/channels/large-mail.test.ts',
  'test/api/http/server.test.ts',
  'test/api/samples.test.ts',
  'test/workers/channels/deliver-pace.test.ts',
  'test/workers/channels/deliver-whatsapp-killed.test.ts',
  'test/patterns.test.ts',
  'test/db/upgrade.test.ts',
  'test/api/dashboard/chromium.test.ts',
  'test/postfix.test.ts',
  'test/db/maintenance/restore-guard/copies.test.ts',
  'test/workers/scaling.test.ts',
  'test/api/hostile.test.ts',
  'test/api/dashboard/journeys.test.ts',
  'test/db/growth.test.ts',
  'test/db/backlog.test.ts',
  'test/api/dashboard/keyboard.test.ts',
  'test/run.test.ts',
  'test/db/growth-others.test.ts',
  'test/workers/channels/deliver-whatsapp-numbers.test.ts',
  'test/workers/channels/deliver-webhook.test.ts',
  'test/workers/channels/deliver-whatsapp.test.ts',
  'test/db/migrate.test.ts',
  'test/workers/channels/hanging-webhooks.test.ts',
  'test/workers/scheduled.test.ts',
  'test/db/queue/idle.test.ts',
  'test/db/postgres/pgbouncer.test.ts',
  'test/api/dashboard/import-journey.test.ts',
  'test/db/maintenance/restore-guard/backup.test.ts',
  'test/workers/domain-ramp.test.ts',
  'test/api/operations/unavailable.test.ts',
  'test/api/broadcasts.test.ts',
  'test/api/dashboard/empty-lists.test.ts',
  'test/workers/channels/killed-partway.test.ts',
  'test/api/dashboard/broadcasts.test.ts',
  'test/workers/channels/deliver-broadcast.test.ts',
  'test/api/dashboard/broadcast-journey.test.ts',
  'test/db/migrate-locks.test.ts',
  'test/db/unvacuumed.test.ts',
  'test/api/dashboard/roles.test.ts',
  'test/workers/jobs/upsert-contacts.test.ts',
  'test/db/process/loaded.test.ts',
  'test/statements.test.ts',
  'test/workers/channels/suppressed-recipients.test.ts',
  'test/workers/channels/whatsapp-late-failures.test.ts',
  'test/workers/delivery/senders.test.ts',
  'test/workers/jobs/relay-reports.test.ts',
  'test/db/dev/postgres.test.ts',
  'test/workers/channels/deliver-whatsapp-pace.test.ts',
  'test/api/http/bodies.test.ts',
  'test/api/main.test.ts',
  'test/workers/channels/deliver-test.test.ts',
  'test/api/memory.test.ts',
  'test/api/dashboard/import-mapping.test.ts',
  'test/api/dashboard/login.test.ts',
  'test/workers/channels/copies.test.ts',
  'test/workers/providers/smtp/faults.test.ts',
  'test/workers/channels/webhook-events.test.ts',
  'test/workers/channels/deliver-attachments.test.ts',
  'test/clocks.test.ts',
] as const

/** The duration of each file in the last complete run, in milliseconds by path. */
const TIMES = 'node_modules/.cache/heliograph-tests/times.json'

type Times = Readonly<Record<string, number>>

/** Returns the durations of the last complete run in this checkout. Empty without one. */
async function lastTimes(root: string): Promise<Times> {
  try {
    return JSON.parse(await readFile(join(root, TIMES), 'utf8'))
  } catch {
    return {}
  }
}

/** Stores the durations of a complete run for the next one. */
export async function keepTimes(root: string, times: ReadonlyMap<string, number>): Promise<void> {
  await mkdir(join(root, dirname(TIMES)), { recursive: true })
  await writeFile(join(root, TIMES), JSON.stringify(Object.fromEntries(times)))
}

/** Returns all test files, the slowest of the last run first. New files come before them. */
export async function testFiles(root: string): Promise<string[]> {
  const names = await readdir(join(root, 'test'), { recursive: true })
  const files = names.filter((name) => name.endsWith('.test.ts')).map((name) => join('test', name))
  const times = await lastTimes(root)
  if (Object.keys(times).length === 0) return [...new Set<string>([...SLOWEST, ...files.sort()])]
  const timeOf = (file: string): number => times[file] ?? Number.MAX_SAFE_INTEGER
  return files.sort().toSorted((one, other) => timeOf(other) - timeOf(one))
}

/** Files that start their own servers or load much data. `test:quick` leaves them out. */
export const HEAVY = [
  'test/api/hostile.test.ts',
  'test/api/samples.test.ts',
  'test/api/test-teams.test.ts',
  'test/chaos/short.test.ts',
  'test/clocks.test.ts',
  'test/container.test.ts',
  'test/db/backlog.test.ts',
  'test/db/dev/postgres.test.ts',
  'test/db/growth.test.ts',
  'test/db/growth-others.test.ts',
  'test/db/migrate.test.ts',
  'test/db/migrate-locks.test.ts',
  'test/db/postgres/replica.test.ts',
  'test/db/start-faults.test.ts',
  'test/db/unvacuumed.test.ts',
  'test/estimates.test.ts',
  'test/postfix.test.ts',
  'test/run.test.ts',
  'test/start.test.ts',
  'test/workers/channels/deliver-whatsapp-killed.test.ts',
]

/** In the text of files that open a browser, or start and kill processes of the product. */
const PROCESSES = /support\/(browser|api-process)\.ts|\bstartProcess\b/

/** Returns the files that are neither heavy nor open a browser or start processes, in the same order. */
export async function quickFiles(root: string, files: readonly string[]): Promise<string[]> {
  const light = files.filter((file) => !HEAVY.includes(file))
  const texts = await Promise.all(light.map((file) => readFile(join(root, file), 'utf8')))
  return light.filter((_file, at) => !PROCESSES.test(texts[at] ?? ''))
}
