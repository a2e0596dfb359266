/** The CLI as a test runs it: the real process, on a database of the test's own. */
import { type ExecFileException, execFile } from 'node:child_process'
import { join } from 'node:path'
import { SECRET_KEY } from './service.ts'

const ENTRY = join(import.meta.dirname, '..', '..', 'db', 'admin', 'main.ts')

export type Call = { code: number; stdout: string; stderr: string }
export type CallOptions = { env?: Record<string, string>; input?: string | Buffer }

export type Cli = {
  /** Runs a call, whatever its end. */
  run(args: readonly string[], options?: CallOptions): Promise<Call>
  /** The call's JSON value. @throws Error with what it printed when it failed. */
  // biome-ignore lint/suspicious/noExplicitAny: what a call prints is JSON, which a test looks into
  json(args: readonly string[], options?: CallOptions): Promise<any>
  /** The line of a call that must fail. @throws Error when it did not fail as promised: one line, nothing else. */
  fault(args: readonly string[], options?: CallOptions): Promise<string>
}

/** The CLI with only these settings in its environment, besides SECRET_KEY. */
export function adminCli(settings: Record<string, string>): Cli {
  const run: Cli['run'] = async (args, { env = {}, input } = {}) =>
    await new Promise((resolve) => {
      const environment = { PATH: process.env.PATH, SECRET_KEY, ...settings, ...env }
      const done = (error: ExecFileException | null, stdout: string, stderr: string) =>
        resolve({ code: error ? Number(error.code ?? 1) : 0, stdout, stderr })
      const child = execFile(
        process.execPath,
        [ENTRY, ...args],
        { env: environment, maxBuffer: 2 ** 26 },
        done,
      )
      child.stdin?.end(input ?? '')
    })
  return {
    run,
    async json(args, options) {
      const { code, stdout, stderr } = await run(args, options)
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
