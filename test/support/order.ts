/**
 * The order in which a run begins its test files: those that take longest go first, so that none of them is left to
 * run alone at the end. Most of these mostly wait: for pauses, heartbeats, dead workers.
 */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'

/** What took longest in a whole run, longest first: `# time=` in its output. */
export const SLOWEST = [
  'test/chaos/short.test.ts',
  'test/api/dashboard/looks.test.ts',
  'test/container.test.ts',
  'test/start.test.ts',
  'test/workers/channels/large-mail.test.ts',
  'test/workers/channels/deliver-email.test.ts',
  'test/db/migrate.test.ts',
  'test/db/growth.test.ts',
  'test/api/dashboard/chromium.test.ts',
  'test/api/hostile.test.ts',
  'test/workers/jobs/ingest-trouble.test.ts',
  'test/api/docs.test.ts',
  'test/workers/channels/deliver-trouble.test.ts',
  'test/api/test-teams.test.ts',
  'test/workers/channels/deliver-pace.test.ts',
  'test/api/http/server.test.ts',
  'test/workers/scheduled.test.ts',
  'test/workers/scaling.test.ts',
  'test/workers/channels/deliver-whatsapp-killed.test.ts',
  'test/workers/jobs/relay-reports.test.ts',
  'test/api/dashboard/journeys.test.ts',
  'test/api/http/bodies.test.ts',
  'test/api/dashboard/keyboard.test.ts',
  'test/api/dashboard/import-journey.test.ts',
  'test/api/dashboard/broadcasts.test.ts',
  'test/db/dev/postgres.test.ts',
  'test/run.test.ts',
  'test/workers/channels/hanging-webhooks.test.ts',
  'test/api/dashboard/broadcast-journey.test.ts',
  'test/api/dashboard/import.test.ts',
  'test/api/dashboard/import-mapping.test.ts',
  'test/api/dashboard/empty-lists.test.ts',
  'test/workers/jobs/upsert-contacts.test.ts',
  'test/db/maintenance/restore-guard/copies.test.ts',
  'test/db/upgrade.test.ts',
  'test/statements.test.ts',
  'test/patterns.test.ts',
  'test/db/maintenance/restore-guard/backup.test.ts',
  'test/db/unvacuumed.test.ts',
  'test/db/start-faults.test.ts',
  'test/workers/channels/deliver-webhook.test.ts',
  'test/api/dashboard/keyboard-content.test.ts',
  'test/workers/jobs/requeue-stale.test.ts',
  'test/workers/channels/deliver-test.test.ts',
  'test/api/dashboard/filters.test.ts',
  'test/db/messages/webhooks/messages.test.ts',
  'test/workers/channels/deliver-whatsapp.test.ts',
  'test/api/dashboard/roles.test.ts',
] as const

/** Every test file of the repository, the slowest first. @param root the repository's. */
export async function testFiles(root: string): Promise<string[]> {
  const names = await readdir(join(root, 'test'), { recursive: true })
  const files = names.filter((name) => name.endsWith('.test.ts')).map((name) => join('test', name))
  return [...new Set<string>([...SLOWEST, ...files.sort()])]
}
