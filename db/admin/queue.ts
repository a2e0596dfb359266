/** Verbs of `queue`: how full the queues are, their dead letters, and pausing them. */

import { listQueues, pauseQueue, QUEUES, resumeQueue } from '../delivery/queues.ts'
import { RequestError } from '../errors.ts'
import { resumeRestored } from '../maintenance/restore-guard/restored.ts'
import { seenNow } from '../postgres/snapshot.sql.ts'
import { deadReasons } from '../queue/dead-letters.sql.ts'
import type { JobName } from '../queue/jobs.ts'
import type { Admin } from './context.ts'
import { oneOf } from './input.ts'
import { answer, type Verbs } from './noun.ts'
import { TEXTS } from './texts.ts'

const MAX_REASONS = 100

const QUEUE = { QUEUE: [QUEUES.join(', '), oneOf(QUEUES)] } as const

/** Resumes one queue, or all that stands since the database was restored. */
async function resume(admin: Admin, job: JobName | undefined, { restored }: { restored?: true }) {
  if ((job === undefined) !== (restored === true)) throw new RequestError('bad_request', TEXTS.whichQueue)
  if (job === undefined) {
    const queue = await admin.queue()
    return admin.transaction((by) => resumeRestored({ ...by, queue }))
  }
  await admin.transaction((by) => resumeQueue(by, job))
  return { queue: job, paused: false }
}

export const verbs: Verbs = ({ verb, look, change, admin }) => {
  verb(
    'status',
    'per queue: jobs ready, active, deferred and failed, dead letters, how long the oldest waits, its workers, and whether it is paused, since when, by whom or why',
  ).action(look(listQueues))

  verb('redrive QUEUE', 'try the dead letters of a queue again: move them back into it', QUEUE)
    .option('--reason <text>', 'only those that were given up for this, as `queue reasons` prints it')
    .action(
      look(async (database, queue: JobName, { reason = null }: { reason?: string | null }) => {
        const given = { queue, reason, seen: await seenNow(database) }
        const wanted = { kind: 'queue.redrive', team_id: null, given } as const
        const { redriven } = await admin.runBackgroundJob<{ redriven: number }>(wanted)
        return { queue, redriven }
      }),
    )

  verb(
    'reasons QUEUE',
    'why the dead letters of a queue were given up, and how many for each reason',
    QUEUE,
  ).action(look((database, queue: JobName) => deadReasons(database, queue, MAX_REASONS)))

  verb(
    'pause QUEUE',
    'let what a queue holds wait: within a second workers take nothing more, and finish what they have',
    QUEUE,
  ).action(
    change(async (by, queue: JobName) => {
      await pauseQueue(by, queue)
      return { queue, paused: true }
    }),
  )

  verb(
    'resume [QUEUE]',
    'let a paused queue go on, or all that stands since the database was restored',
    QUEUE,
  )
    .option('--restored', 'all queues and broadcasts that were paused since the database is a copy')
    .action(answer((job: JobName | undefined, options: { restored?: true }) => resume(admin, job, options)))
}
