/**
 * Runs the discarding relay as a separate process, because its event loop must not affect the measured code.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { startDiscardingRelay, type Taken } from '../support/discarding-relay.ts'

export type RelayProcess = {
  url: string
  /** Accepted emails in order. `at` is the `performance.now()` of this process. */
  taken: readonly Taken[]
  stop(): Promise<void>
}

/** Starts one on a free port of 127.0.0.1. */
export async function startRelayProcess(): Promise<RelayProcess> {
  const child = fork(import.meta.filename)
  const taken: Taken[] = []
  const [url] = (await once(child, 'message')) as [string]
  child.on('message', (mail: Taken) => taken.push({ ...mail, at: mail.at - performance.timeOrigin }))
  return {
    url,
    taken,
    async stop() {
      child.disconnect()
      await once(child, 'exit')
    },
  }
}

/** Runs in the separate process. Reports its URL, then each email with a time since the epoch. */
async function serve(report: (message: string | Taken) => void): Promise<void> {
  const endings: (() => Promise<void>)[] = []
  const onTaken = (mail: Taken): void => report({ ...mail, at: mail.at + performance.timeOrigin })
  const relay = await startDiscardingRelay({ teardown: (end) => void endings.push(end) }, { onTaken })
  report(relay.url)
  process.once('disconnect', async () => {
    for (const end of endings) await end()
  })
}

if (process.send && process.argv[1] === import.meta.filename)
  await serve((message) => process.send?.(message))
