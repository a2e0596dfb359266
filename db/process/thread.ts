/** One thread for work that would keep the process busy. It starts with the first task and ends when idle. */

/** How long an idle thread is kept, in milliseconds. */
const THREAD_IDLE_MS = 60_000

const PRELOAD = new URL('./preload.js', import.meta.url).href

/** A thread, which its pool starts for a task and replaces once it has ended. */
export async function openThread<Task, Answer>(
  entry: URL,
  resourceLimits: { maxOldGenerationSizeMb: number; maxYoungGenerationSizeMb: number },
) {
  // Loaded with the first task: most processes never have one.
  const { Piscina } = await import('piscina')
  const pool = new Piscina<Task, Answer>({
    filename: entry.href,
    minThreads: 0,
    maxThreads: 1,
    idleTimeout: THREAD_IDLE_MS,
    // As the process itself: what is compiled is kept between starts.
    execArgv: ['--import', PRELOAD],
    resourceLimits,
  })
  // A thread that ends between two tasks harms none. Without a listener the event would end the process.
  pool.on('error', () => {})
  return pool
}

/** True if a thread ended over its task by its time, its memory or an exit. An error of ours in it is none of them. */
export const isThreadDeath = (error: unknown): boolean => {
  const { name, code, message } = error as Error & { code?: string }
  return name === 'AbortError' || code === 'ERR_WORKER_OUT_OF_MEMORY' || message.startsWith('worker exited')
}
