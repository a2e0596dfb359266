/** Starts a rig on Debian's PostgreSQL with its default settings, which compile statements (JIT). */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startCluster } from '../support/cluster.ts'
import { systemPostgresMissing, systemPrograms } from '../support/system-postgres.ts'
import { Missing } from './figures.ts'
import { type Kept, type Rig, startRig } from './rig.ts'

/** Measures on a new cluster of Debian's server. @throws Missing if it isn't installed. */
export async function onDebian<T>(kept: Kept, work: (rig: Rig) => Promise<T>): Promise<T> {
  const programs = systemPrograms()
  if (programs === null) throw new Missing(systemPostgresMissing() ?? '')
  const directory = await mkdtemp(join(tmpdir(), 'heliograph-bench-'))
  const server = await startCluster(programs, directory, {})
  try {
    const rig = await startRig({ ...kept, url: server.url })
    return await work(rig).finally(() => rig.stop())
  } finally {
    await server.stop()
    await rm(directory, { recursive: true, force: true })
  }
}
