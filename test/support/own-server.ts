/**
 * A PostgreSQL of one test's own, migrated and empty, for what depends on who else is at work on the server.
 * A snapshot begins at the oldest transaction of all the server's databases, so that one of another test's keeps dead
 * rows from being pruned and pages from being marked as visible to all; so does a commit whose log is not yet written;
 * and when autovacuum comes is chance.
 */
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { startPostgres } from '../../db/dev/postgres.ts'
import { migrate } from '../../db/migrate.ts'
import { startCluster } from './cluster.ts'
import { quickParent, SETTINGS } from './quick-server.ts'

/** Where its programs are, for test/versions; else it is the embedded one. */
export const PROGRAMS = 'TEST_POSTGRES_PROGRAMS'

/** Starts it. @param settings beside ours. @returns the URL of its database; all ends with the test. */
export async function ownServer(
  t: { teardown(end: () => Promise<void>): unknown },
  settings: Record<string, string> = {},
): Promise<{ url: string }> {
  const directory = await mkdtemp(join(await quickParent(), 'heliograph-own-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  // Run by root, PostgreSQL is somebody else, who must be able to pass through.
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
