/** Runs work that would block the process in one thread, which ends when idle. */
import { codeOf } from '../errors.ts'

/** In milliseconds. */
const THREAD_IDLE_MS = 60_000

const PRELOAD = new URL('./preload.js', import.meta.url).href

/** Creates a pool for a single thread. The thread starts with a task, and is replaced if it dies. */
export async function openThread<Task, Answer>(
  entry: URL,
  resourceLimits: { maxOldGenerationSizeMb: number; maxYoungGenerationSizeMb: number },
) {
  // Loaded with the first task, because most processes never have one.
  const { Piscina } = await import('piscina')
  const pool = new Piscina<Task, Answer>({
    filename: entry.href,
    minThreads: 0,
    maxThreads: 1,
    idleTimeout: THREAD_IDLE_MS,
    // As in the process itself: compiled code is cached.
    execArgv: ['--import', PRELOAD],
    resourceLimits,
  })
  // A thread that dies between two tasks does no harm. Without a listener, the event would end the process.
  pool.on('error', () => {})
  return pool
}

/** True if the thread died during its task: aborted, out of memory or exited. Other errors are our own. */
export const isThreadDeath = (error: unknown): boolean => {
  if (!(error instanceof Error)) return false
  const isOutOfMemory = codeOf(error) === 'ERR_WORKER_OUT_OF_MEMORY'
  return error.name === 'AbortError' || isOutOfMemory || error.message.startsWith('worker exited')
}
