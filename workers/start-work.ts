/**
 * Starts and stops the work of a worker process: delivery, batch loops, scheduled jobs, and enqueuing scheduled
 * messages. Nothing is claimed once a drain has started, and work in flight is recorded first. An error in one
 * scheduled job stops no other.
 */

import type { JobName } from '../db/queue/jobs.ts'
import { entriesOf } from '../db/validation/keys.ts'
import { runBatches } from './batches/batches.ts'
import type { Delivery } from './delivery/engine.ts'
import type { WorkerDeps } from './deps.ts'
import { JOB_HANDLERS, openSlots, type Registration, SCHEDULED_JOBS, type SlotShares } from './registry.ts'
import { startScheduler } from './scheduler.ts'

export async function startWork(jobs: readonly JobName[], deps: WorkerDeps): Promise<Delivery> {
  const slots = openSlots(deps)
  const running = jobs.map((job) => startQueue(job, deps, slots))
  for (const [name, run] of entriesOf(SCHEDULED_JOBS)) {
    await deps.queue.schedule(name, async () => {
      try {
        await run(deps)
      } catch (error) {
        deps.log.error({ err: error, job: name }, 'scheduled job failed')
      }
    })
  }
  const releasing = startScheduler(deps)
  return {
    async drain(patience) {
      deps.queue.close()
      await Promise.all([releasing.drain(), ...running.map((queue) => queue.drain(patience))])
    },
  }
}

function startQueue<J extends JobName>(job: J, deps: WorkerDeps, slots: SlotShares): Delivery {
  const registration: Registration<J> = JOB_HANDLERS[job]
  if ('deliver' in registration) return registration.deliver(deps, slots)
  const claims = deps.queue.claims(job)
  const loops = Array.from({ length: registration.loops }, () => runBatches(job, registration, claims, deps))
  return { drain: async () => void (await Promise.all(loops)) }
}
