/**
 * The order in which a run begins its test files: those that take longest go first, so that none of them is left to
 * run alone at the end. Most of these mostly wait: for pauses, heartbeats, dead workers.
 */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'

/** What took longest in a whole run, longest first: `# time=` in its output. */
export const SLOWEST = [
  'test/workers/channels/large-mail.test.ts',
  'test/api/dashboard/chromium.test.ts',
  'test/api/dashboard/looks.test.ts',
  'test/workers/channels/deliver-email.test.ts',
  'test/start.test.ts',
  'test/chaos/short.test.ts',
  'test/workers/jobs/ingest-trouble.test.ts',
  'test/workers/jobs/ingest-report.test.ts',
  'test/workers/channels/hanging-webhooks.test.ts',
  'test/workers/channels/deliver-trouble.test.ts',
  'test/workers/channels/deliver-whatsapp-pace.test.ts',
  'test/workers/channels/deliver-whatsapp.test.ts',
  'test/db/dev/postgres.test.ts',
  'test/workers/scaling.test.ts',
  'test/workers/channels/deliver-pace.test.ts',
  'test/workers/channels/deliver-webhook.test.ts',
  'test/workers/channels/deliver-whatsapp-killed.test.ts',
  'test/db/start-faults.test.ts',
  'test/api/http/server.test.ts',
  'test/workers/delivery/senders.test.ts',
  'test/db/postgres/pgbouncer.test.ts',
  'test/db/postgres/replica.test.ts',
  'test/api/dashboard/roles.test.ts',
  'test/workers/channels/deliver-broadcast.test.ts',
  'test/api/broadcasts.test.ts',
  'test/api/uploads.test.ts',
  'test/api/attachments.test.ts',
  'test/db/admin/audit.test.ts',
  'test/workers/jobs/requeue-stale.test.ts',
] as const

/** Every test file of the repository, the slowest first. @param root the repository's. */
export async function testFiles(root: string): Promise<string[]> {
  const names = await readdir(join(root, 'test'), { recursive: true })
  const files = names.filter((name) => name.endsWith('.test.ts')).map((name) => join('test', name))
  return [...new Set<string>([...SLOWEST, ...files.sort()])]
}
