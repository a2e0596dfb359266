/** Verbs of `queue`: how full the queues are, their dead letters, and pausing them. */
import { listQueues, pauseQueue, QUEUES, resumeQueue } from '../delivery/queues.ts'
import { seenNow } from '../postgres/seen.sql.ts'
import { deadReasons } from '../queue/jobs.sql.ts'
import type { JobName } from '../queue/jobs.ts'
import { oneOf } from './input.ts'
import type { Verbs } from './noun.ts'

/** How many reasons are listed. */
const REASONS = 100

const QUEUE = { QUEUE: [QUEUES.join(', '), oneOf(QUEUES)] } as const

export const verbs: Verbs = ({ verb, look, change, admin }) => {
  verb(
    'status',
    'per queue: jobs ready, active, deferred and failed, dead letters, how long the oldest waits, and its workers',
  ).action(look(listQueues))

  verb('redrive QUEUE', 'move the dead letters of a queue back, so that they are tried again', QUEUE)
    .option('--reason <text>', 'only those that were given up for this, as `queue reasons` prints it')
    .action(
      look(async (database, queue: JobName, { reason = null }: { reason?: string | null }) => {
        const given = { queue, reason, seen: await seenNow(database) }
        const work = { kind: 'queue.redrive', team_id: null, given } as const
        const { redriven } = await admin.work<{ redriven: number }>(work)
        return { queue, redriven }
      }),
    )

  verb(
    'reasons QUEUE',
    'why the dead letters of a queue were given up, and how many for each reason',
    QUEUE,
  ).action(look((database, queue: JobName) => deadReasons(database, queue, REASONS)))

  verb(
    'pause QUEUE',
    'let what a queue holds wait: workers finish what they have and take nothing more of it',
    QUEUE,
  ).action(
    change(async (by, queue: JobName) => {
      await pauseQueue(by, queue)
      return { queue, paused: true }
    }),
  )

  verb('resume QUEUE', 'let a paused queue go on', QUEUE).action(
    change(async (by, queue: JobName) => {
      await resumeQueue(by, queue)
      return { queue, paused: false }
    }),
  )
}
