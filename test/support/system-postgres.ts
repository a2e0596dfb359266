/**
 * The machine's own PostgreSQL from Debian's packages, which compiles statements (JIT). The embedded one
 * can't.
 */
import { existsSync, globSync } from 'node:fs'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startCluster } from './cluster.ts'
import { SETTINGS } from './quick-server.ts'

/** The folder of the newest installed version's programs. Null without one that has LLVM. */
export const systemPrograms = (): string | null =>
  globSync('/usr/lib/postgresql/*/bin')
    .filter((bin) => existsSync(join(bin, '../lib/llvmjit.so')))
    .sort((a, b) => Number(a.split('/').at(-2)) - Number(b.split('/').at(-2)))
    .at(-1) ?? null

/** Returns why such a server is unavailable. Null if it is available. */
export const systemPostgresMissing = (): string | null =>
  systemPrograms() === null
    ? 'PostgreSQL with LLVM is not installed (Debian: apt-get install -y postgresql)'
    : null

/** Starts an empty server for the test. @returns the URL of its superuser. */
export async function systemPostgres(t: { teardown(end: () => Promise<unknown>): unknown }) {
  const directory = await mkdtemp(join(tmpdir(), 'heliograph-system-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  await chmod(directory, 0o711)
  const { url, stop } = await startCluster(systemPrograms() ?? '', directory, SETTINGS)
  t.teardown(stop)
  return { url }
}
