/**
 * Starts PostgreSQL with other programs than the embedded ones, such as another version or the machine's own.
 */
import { chmod, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { unprivilegedAccount } from '../../db/dev/place.ts'
import { isRoot, type ProcessUser, run, stopServer } from '../../db/dev/process.ts'
import { launch, type Settings } from '../../db/dev/server.ts'
import { SETTINGS } from './quick-server.ts'

/**
 * Creates an empty cluster and starts it. Connections from this machine don't need a password.
 * @param bin the folder of its programs.
 * @param home its empty data folder.
 */
export async function startCluster(bin: string, home: string, settings: Settings = SETTINGS) {
  const account: ProcessUser = isRoot() ? await unprivilegedAccount() : {}
  const data = join(home, 'data')
  // If root runs the tests, PostgreSQL runs as another user, which needs access to the folder.
  await chmod(home, 0o711)
  await mkdir(data, { mode: 0o700 })
  if (account.uid !== undefined) await run('chown', [`${account.uid}:${account.gid}`, data])
  const flags = ['--username=heliograph', '--auth=trust', '--encoding=UTF8', '--locale=C.UTF-8', '--no-sync']
  await run(join(bin, 'initdb'), ['-D', data, ...flags], account)
  const port = await launch({ home, data, bin, account }, undefined, settings)
  return { url: `postgres://heliograph@127.0.0.1:${port}/postgres`, stop: () => stopServer(data) }
}
