/** Verbs of `queue`: how full the queues are, and their dead letters. */
import { EMAIL, WHATSAPP } from '../delivery/channel.sql.ts'
import { noteRedriven } from '../delivery/requeue.ts'
import { liveProcesses } from '../fleet/fleet.sql.ts'
import { FORGOTTEN } from '../fleet/fleet.ts'
import type { Tx } from '../postgres/pool.ts'
import { queueStatus } from '../queue/jobs.sql.ts'
import { JOBS, type JobName, type Payload } from '../queue/jobs.ts'
import { pausedQueues, pauseQueue, resumeQueue } from '../queue/pauses.sql.ts'
import type { Admin } from './context.ts'
import { oneOf } from './input.ts'
import { answer, type Verbs } from './noun.ts'

const QUEUES = Object.keys(JOBS) as JobName[]

/** What a queue's rows are told when their dead letters move back. */
type Moved = { [J in JobName]?: (at: { tx: Tx; now: Date }, payloads: Payload<J>[]) => Promise<unknown> }

const MOVED: Moved = {
  'deliver-email': (at, payloads) => noteRedriven(at, EMAIL, payloads),
  'deliver-whatsapp': (at, payloads) => noteRedriven(at, WHATSAPP, payloads),
}

async function redrive<J extends JobName>(admin: Admin, job: J) {
  const database = await admin.database()
  const queue = await admin.queue()
  const moved = async (tx: Tx, payloads: Payload<J>[]) =>
    void (await MOVED[job]?.({ tx, now: admin.now }, payloads))
  return { queue: job, redriven: await queue.redrive(database, job, moved) }
}

/** Each queue as it stands, with the workers on it and their last sign of life. */
async function status(admin: Admin) {
  const database = await admin.database()
  const processes = await liveProcesses(database, FORGOTTEN)
  const paused = await pausedQueues(database)
  return (await queueStatus(database)).map((queue) => ({
    ...queue,
    paused: paused.has(queue.queue),
    workers: processes
      .filter(({ queues }) => queues.includes(queue.queue))
      .map(({ host, pid, seen_at }) => ({ host, pid, seen_at })),
  }))
}

export const verbs: Verbs = (queue, admin) => {
  queue
    .command('status')
    .description(
      'per queue: jobs ready, active, deferred and failed, dead letters, how long the oldest waits, and its workers',
    )
    .action(answer(() => status(admin)))

  queue
    .command('redrive')
    .description('move the dead letters of a queue back, so that they are tried again')
    .argument('<queue>', QUEUES.join(', '), oneOf(QUEUES))
    .action(answer((job: JobName) => redrive(admin, job)))

  queue
    .command('pause')
    .description('let what a queue holds wait: workers finish what they have and take nothing more of it')
    .argument('<queue>', QUEUES.join(', '), oneOf(QUEUES))
    .action(
      answer(async (job: JobName) => {
        await pauseQueue(await admin.database(), job, admin.now)
        return { queue: job, paused: true }
      }),
    )

  queue
    .command('resume')
    .description('let a paused queue go on')
    .argument('<queue>', QUEUES.join(', '), oneOf(QUEUES))
    .action(
      answer(async (job: JobName) => {
        await resumeQueue(await admin.database(), job)
        return { queue: job, paused: false }
      }),
    )
}
