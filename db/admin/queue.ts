/** Verbs of `queue`: the state of queues, their dead letters, and pauses. */

import { listQueues, pauseQueue, QUEUES, resumeQueue } from '../delivery/queues.ts'
import { RequestError } from '../errors.ts'
import { resumeRestored } from '../maintenance/restore-guard/restored.ts'
import { seenNow } from '../postgres/snapshot.sql.ts'
import { deadReasons } from '../queue/dead-letters.sql.ts'
import { type JobName, PART_OF } from '../queue/jobs.ts'
import type { Admin } from './context.ts'
import { oneOf } from './input.ts'
import { answer, type Verbs } from './noun.ts'
import { TEXTS } from './texts.ts'

const MAX_REASONS = 100

/** Names the queues that pause and resume together. */
const TOGETHER = [...PART_OF].map(([part, whole]) => `${whole} and ${part} pause together.`).join(' ')

const QUEUE = { QUEUE: [QUEUES.join(', '), oneOf(QUEUES)] } as const

/** Resumes one queue, or everything that a restore of the database paused. */
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
  verb('status', 'Show job counts, age of the oldest job, workers and pauses for each queue').action(
    look(listQueues),
  )

  verb('redrive QUEUE', 'Retry the dead letters of a queue', QUEUE)
    .option('--reason <text>', 'only jobs that failed for this reason, as printed by `queue reasons`')
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
    'Show why the dead letters of a queue failed, with the number of jobs for each reason',
    QUEUE,
  ).action(look((database, queue: JobName) => deadReasons(database, queue, MAX_REASONS)))

  verb(
    'pause QUEUE',
    `Pause a queue. Workers stop claiming its jobs within a second and finish those in progress. ${TOGETHER}`,
    QUEUE,
  ).action(
    change(async (by, queue: JobName) => {
      await pauseQueue(by, queue)
      return { queue, paused: true }
    }),
  )

  verb('resume [QUEUE]', 'Resume a paused queue, or everything paused by a restore of the database', QUEUE)
    .option(
      '--restored',
      'all queues and broadcasts that were paused because the database was restored or copied',
    )
    .action(answer((job: JobName | undefined, options: { restored?: true }) => resume(admin, job, options)))
}
