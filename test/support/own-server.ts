/**
 * Starts a migrated, empty PostgreSQL for one test, for results that depend on other activity on the server.
 * A snapshot starts at the oldest transaction of all databases, so another test's transaction keeps dead rows
 * from being pruned and pages from being marked all-visible. A commit whose log isn't written yet has the
 * same effect. Also, autovacuum's timing is random.
 */
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { startPostgres } from '../../db/dev/postgres.ts'
import { migrate } from '../../db/migrate.ts'
import { startCluster } from './cluster.ts'
import { quickParent, SETTINGS } from './quick-server.ts'

/** The variable with the folder of its programs, for test/versions. The default is the embedded server. */
export const PROGRAMS = 'TEST_POSTGRES_PROGRAMS'

/**
 * Starts it.
 * @param settings in addition to ours.
 * @returns the URL of its database. Everything ends with the test.
 */
export async function ownServer(
  t: { teardown(end: () => Promise<void>): unknown },
  settings: Record<string, string> = {},
): Promise<{ url: string }> {
  const directory = await mkdtemp(join(await quickParent(), 'heliograph-own-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  // If root runs the tests, PostgreSQL runs as another user, which needs access to the folder.
  await chmod(directory, 0o711)
  const all = { ...SETTINGS, synchronous_commit: 'on', ...settings }
  const bin = process.env[PROGRAMS]
  const { url, stop } = bin
    ? await startCluster(bin, directory, all)
    : await startPostgres({ directory, settings: all })
  t.teardown(stop)
  await migrate(url)
  return { url }
}
