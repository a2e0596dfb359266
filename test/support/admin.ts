/**
 * Runs the CLI with a test's own database. Sequential calls share a process. A concurrent call gets a
 * separate process, like every call outside tests (`process: true` forces that).
 */
import { type ChildProcess, type ExecFileException, execFile, fork } from 'node:child_process'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { HostAnswer, HostCall } from './admin-host.ts'
import { bareEnvironment, SECRET_KEY } from './environment.ts'

const ENTRY = join(import.meta.dirname, '..', '..', 'db', 'admin', 'main.ts')
const HOST = join(import.meta.dirname, 'admin-host.ts')
const SOCKET = pathToFileURL(join(import.meta.dirname, 'database-socket.ts')).href

export type Call = HostAnswer
type CallOptions = { env?: Record<string, string>; input?: string | Buffer }

type Cli = {
  /** Runs a call, which may fail. */
  run(args: readonly string[], options?: CallOptions): Promise<Call>
  /** Returns the call's JSON value. @throws Error with its output if it failed. */
  // biome-ignore lint/suspicious/noExplicitAny: tests read properties of a call's JSON output
  json(args: readonly string[], options?: CallOptions): Promise<any>
  /**
   * Runs a call that must fail. @returns its error message. @throws Error unless the call failed with exactly
   * one line.
   */
  fault(args: readonly string[], options?: CallOptions): Promise<string>
}

/** Runs one call in a separate process. */
const runAlone = ({ args, env, input }: HostCall): Promise<Call> =>
  new Promise((resolve) => {
    const done = (error: ExecFileException | null, stdout: string, stderr: string) =>
      resolve({ code: error ? Number(error.code ?? 1) : 0, stdout, stderr })
    const child = execFile(process.execPath, [ENTRY, ...args], { env, maxBuffer: 2 ** 26 }, done)
    child.stdin?.end(input)
  })

let host: ChildProcess | undefined
/** The persistent process's current call. */
let current: PromiseWithResolvers<Call> | undefined

function startHost(): ChildProcess {
  const { TEST_DATABASE_SOCKET = '' } = process.env
  const child = fork(HOST, {
    execArgv: ['--import', SOCKET],
    env: { ...bareEnvironment(), TEST_DATABASE_SOCKET },
    serialization: 'advanced',
  })
  child.on('message', (answer: HostAnswer) => current?.resolve(answer))
  child.once('exit', (code) => current?.reject(new Error(`the process of the CLI ended with ${code}`)))
  return child
}

/** Runs one call in the persistent process. While idle, that doesn't keep a test process running. */
async function runHosted(call: HostCall): Promise<Call> {
  current = Promise.withResolvers()
  host ??= startHost()
  try {
    host.ref()
    host.channel?.ref()
    host.send(call)
    return await current.promise
  } finally {
    current = undefined
    host.unref()
    host.channel?.unref()
  }
}

/** Creates a CLI with only these settings and SECRET_KEY in its environment. */
export function adminCli(settings: Record<string, string>, { process: alone = false } = {}): Cli {
  const run: Cli['run'] = async (args, { env = {}, input = '' } = {}) => {
    const call = { args, env: { ...bareEnvironment(), SECRET_KEY, ...settings, ...env }, input }
    return alone || current ? await runAlone(call) : await runHosted(call)
  }
  return {
    run,
    async json(args, options) {
      let { code, stdout, stderr } = await run(args, options)
      // On a busy machine a query may exceed its time limit. Nothing was changed.
      for (let repeats = 0; repeats < 5 && stderr.startsWith('The query was cancelled'); repeats += 1)
        ({ code, stdout, stderr } = await run(args, options))
      if (code === 0 && stderr === '') return JSON.parse(stdout)
      throw new Error(`${args.join(' ')}: exit code ${code}: ${stderr}`)
    },
    async fault(args, options) {
      const { code, stdout, stderr } = await run(args, options)
      if (code === 1 && stdout === '' && /^[^\n]+\n$/.test(stderr)) return stderr.trimEnd()
      throw new Error(`${args.join(' ')}: exit code ${code}, stdout ${stdout}, stderr ${stderr}`)
    },
  }
}
