/**
 * Builds the image of .container/Containerfile here and runs it like a container runtime. Two bases replace
 * those of the file, made of this machine's Debian packages and the Node that runs the tests. Images and
 * containers are in a folder of the test. A process of the image is the first of its process namespace, with
 * the image's user, environment and command. Everything is removed afterwards.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, cp, mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Test } from 'tap'
import { canary } from './canary.ts'
import { ROOT } from './program.ts'
import { programMissing, runProgram } from './programs.ts'
import { until } from './worker.ts'

/** The packages that Node needs, and those that the build's commands also need. */
const FOR_NODE = ['libc6', 'libgcc-s1', 'libstdc++6']
const FOR_COMMANDS = ['libacl1', 'libattr1', 'libgmp10', 'libpcre2-8-0', 'libselinux1']
const FOR_BUILDING = [...FOR_NODE, ...FOR_COMMANDS, 'coreutils', 'dash', 'findutils', 'sed']
const PATH = '/usr/local/bin:/usr/bin:/bin'
/** npm's cache for this checkout during the build of the image. */
const NPM_CACHE = '/npm-cache'

/** Returns why no image can be built here. Null if one can. */
export async function buildahMissing(): Promise<string | null> {
  if (process.platform !== 'linux') return 'buildah runs on Linux'
  if (process.getuid?.() !== 0) return 'buildah must be started by root'
  return (await programMissing('buildah', 'buildah')) ?? (await programMissing('dpkg', 'dpkg'))
}

/** Copies the files of packages into a folder whose /bin and /lib are those of /usr. */
async function layPackages(root: string, packages: readonly string[]): Promise<void> {
  for (const name of ['bin', 'lib', 'lib64']) {
    await mkdir(join(root, 'usr', name), { recursive: true })
    await symlink(`usr/${name}`, join(root, name))
  }
  for (const name of ['etc', 'root', 'tmp']) await mkdir(join(root, name))
  const script = `dpkg -L "$@" | while read -r file; do [ -d "$file" ] || [ ! -e "$file" ] || echo "$file"; done |
    tar -cPT - | tar -xC "$ROOT" --keep-directory-symlink 2> /dev/null`
  await runProgram('/bin/sh', ['-c', script, 'sh', ...packages], { env: { ...process.env, ROOT: root } })
}

const npmSetting = async (name: string): Promise<string> =>
  (await runProgram('npm', ['config', 'get', name], { cwd: ROOT })).stdout.trim()

/** Copies Node and npm to their places in the official image, with this machine's registry settings. */
async function layNode(root: string): Promise<void> {
  const own = join(root, 'usr/local')
  const npm = dirname(
    dirname(await realpath((await runProgram('/bin/sh', ['-c', 'command -v npm'])).stdout.trim())),
  )
  for (const folder of ['bin', 'etc', 'lib/node_modules']) await mkdir(join(own, folder), { recursive: true })
  await copyFile(process.execPath, join(own, 'bin/node'))
  await cp(npm, join(own, 'lib/node_modules/npm'), { recursive: true })
  await symlink('../lib/node_modules/npm/bin/npm-cli.js', join(own, 'bin/npm'))
  const settings = [`registry=${await npmSetting('registry')}`, `cache=${NPM_CACHE}`, 'prefer-offline=true']
  const authorities = await npmSetting('cafile')
  if (authorities !== 'null') {
    await copyFile(authorities, join(own, 'etc/authorities.pem'))
    settings.push('cafile=/usr/local/etc/authorities.pem')
  }
  await writeFile(join(own, 'etc/npmrc'), `${settings.join('\n')}\n`)
}

/** The image's configuration, in the terms of the image specification. */
type ImageConfig = {
  User: string
  Env: string[]
  Entrypoint: string[]
  Cmd: string[]
  WorkingDir: string
  StopSignal: string
  Healthcheck: { Test: string[] }
}

/** A process of the image, with its pid on this machine and its output. */
export type Contained = {
  pid: number
  output(): string
  exited: Promise<number | string>
  kill(signal: NodeJS.Signals): void
}

type Image = {
  /** The folder of the image's files. */
  root: string
  bytes: number
  config: ImageConfig
  /** Starts the image's entry point with these arguments instead of the default ones. */
  start(args: string[], env?: Record<string, string>): Promise<Contained>
  /** Runs another command in the image. @returns its exit code. */
  exec(command: string[], env?: Record<string, string>): Promise<number | string>
}

/** Waits for the process that `unshare` starts. @returns its pid. */
async function firstChild(outer: ChildProcess, exited: Promise<unknown>): Promise<number> {
  let child = 0
  let over = false
  void exited.then(() => {
    over = true
  })
  await until('the process is there', async () => {
    const list = `/proc/${outer.pid}/task/${outer.pid}/children`
    child = Number((await readFile(list, 'utf8').catch(() => '')).trim())
    return child > 0 || over
  })
  return child
}

/** Starts a command in the files of the image, as its user and as process 1. */
async function contain(
  t: Test,
  { root, config }: Pick<Image, 'root' | 'config'>,
  command: string[],
  env: Record<string, string>,
): Promise<Contained> {
  const [uid = '', gid = uid] = config.User.split(':')
  const inside = [`--root=${root}`, `--wd=${config.WorkingDir}`, `--setgid=${gid}`, `--setuid=${uid}`]
  const own = Object.fromEntries(config.Env.map((line) => line.split(/=(.*)/s).slice(0, 2)))
  const outer = spawn('/usr/bin/unshare', ['--pid', '--fork', ...inside, ...command], {
    env: { ...own, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const said: string[] = []
  for (const output of [outer.stdout, outer.stderr])
    createInterface({ input: output }).on('line', (text) => {
      canary.note({ where: `the output of ${command.at(-1)}`, text })
      said.push(text)
    })
  const exited = once(outer, 'close').then(([code, signal]) => (signal ?? code) as number | string)
  const pid = await firstChild(outer, exited)
  const kill = (signal: NodeJS.Signals): void => {
    try {
      if (pid > 0) process.kill(pid, signal)
    } catch {
      // The process has ended.
    }
  }
  t.teardown(async () => {
    kill('SIGKILL')
    await exited
  })
  return { pid, output: () => said.join('\n'), exited, kill }
}

/** Builds the image. It is removed with the test. */
export async function buildImage(t: Test): Promise<Image> {
  const home = await mkdtemp(join(tmpdir(), 'heliograph-image-'))
  t.teardown(() => rm(home, { recursive: true, force: true }))
  const stores = ['--root', join(home, 'store'), '--runroot', join(home, 'run'), '--storage-driver', 'vfs']
  const buildah = async (...args: string[]): Promise<string> =>
    (await runProgram('buildah', [...stores, ...args], { cwd: ROOT, maxBuffer: 2 ** 26 })).stdout.trim()

  for (const [name, packages] of [
    ['base', FOR_NODE],
    ['node', FOR_BUILDING],
  ] as const) {
    const files = join(home, name)
    await layPackages(files, packages)
    if (name === 'node') await layNode(files)
    await writeFile(join(home, `${name}.file`), `FROM scratch\nENV PATH=${PATH}\nCOPY . /\n`)
    await buildah('build', '-q', '--isolation', 'chroot', '-f', join(home, `${name}.file`), '-t', name, files)
    await rm(files, { recursive: true })
  }
  const bases = ['--build-arg', 'NODE=localhost/node', '--build-arg', 'BASE=localhost/base']
  await buildah(
    ...['build', '--isolation', 'chroot', '--format', 'docker', '-f', '.container/Containerfile', ...bases],
    ...['-v', `${await npmSetting('cache')}:${NPM_CACHE}`, '-t', 'heliograph', '.'],
  )
  const { Docker } = JSON.parse(await buildah('inspect', '--type', 'image', 'heliograph'))
  const root = await buildah('mount', await buildah('from', 'heliograph'))
  const config = Docker.config as ImageConfig
  const of = { root, config }
  return {
    ...of,
    bytes: Number((await runProgram('du', ['-sb', root])).stdout.split('\t')[0]),
    start: (args, env = {}) => contain(t, of, [...config.Entrypoint, ...args], env),
    exec: async (command, env = {}) => (await contain(t, of, command, env)).exited,
  }
}
