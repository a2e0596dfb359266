/** Runs the API in a separate process, as in production, on a free port that it picks itself. */
import { type Call, caller } from './service.ts'
import type { Teardown } from './smtp-sink.ts'
import { type OurProcess, startProcess } from './worker.ts'

/**
 * Starts `api/main.ts` on a database and waits until it responds. `env` adds settings. See startProcess for
 * `root` and `execPath`.
 */
export async function startApi(
  t: Teardown,
  url: string,
  env: Record<string, string> = {},
  root?: string,
  execPath?: string,
): Promise<OurProcess & { base: string; call: Call }> {
  const api = await startProcess(t, 'api/main.ts', { DATABASE_URL: url, PORT: '0', ...env }, root, execPath)
  const base = `http://127.0.0.1:${api.up.port}`
  return { ...api, base, call: caller(base) }
}
