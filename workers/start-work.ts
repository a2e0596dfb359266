/**
 * Starts what a worker process does, and ends it: delivery, loops over batches, what runs by the clock, and letting go
 * what has waited for its time.
 * Promises: nothing is claimed once a drain has begun; what is in flight ends and is recorded first. One scheduled
 * job's fault ends no other.
 */

import type { JobName } from '../db/queue/jobs.ts'
import { runBatches } from './batches/batches.ts'
import type { Delivery } from './delivery/engine.ts'
import type { WorkerDeps } from './deps.ts'
import { JOB_HANDLERS, openSlots, type Registration, SCHEDULED_JOBS, type SlotShares } from './registry.ts'
import { startScheduler } from './scheduler.ts'

type Work = {
  /** Begins nothing more, waits for what is in flight. @param patience milliseconds until sends are cut off. */
  drain(patience: number): Promise<void>
}

export async function startWork(jobs: readonly JobName[], deps: WorkerDeps): Promise<Work> {
  const slots = openSlots(deps)
  const running = jobs.map((job) => startQueue(job, deps, slots))
  for (const [name, run] of Object.entries(SCHEDULED_JOBS)) {
    await deps.queue.schedule(name as keyof typeof SCHEDULED_JOBS, async () => {
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
