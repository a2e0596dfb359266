/** The queues: how full and how fast they are, who works on them; pausing; why jobs were given up, and trying again. */

import { DELIVERIES, sendsFor } from '../../../../db/channels/channels.sql.ts'
import {
  listQueues,
  pauseQueue,
  QUEUES,
  resumeQueue,
  type ShownQueue,
} from '../../../../db/delivery/queues.ts'
import { listSenders } from '../../../../db/delivery/senders/show.ts'
import { RequestError } from '../../../../db/errors.ts'
import { beginBackgroundJob } from '../../../../db/maintenance/background-jobs/background-jobs.ts'
import { resumeRestored } from '../../../../db/maintenance/restore-guard/restored.ts'
import type { Tx } from '../../../../db/postgres/pool.ts'
import { seenNow } from '../../../../db/postgres/snapshot.sql.ts'
import { countDeadLetters, deadReasons } from '../../../../db/queue/dead-letters.sql.ts'
import { MAX_COUNTED } from '../../../../db/queue/jobs.sql.ts'
import type { JobName } from '../../../../db/queue/jobs.ts'
import { RESTORED } from '../../../../db/queue/pauses.sql.ts'
import { type Cell, countdown, duration, number, plural, status, text, time } from '../../components/cell.ts'
import type { Alert, Form } from '../../components/section.ts'
import { RESTORED_COPY } from '../../components/timeline.ts'
import { act, alertsOf, buttonCell, compact, get, post, press, tableOf } from '../../server/builders.ts'
import { countedFields, countedOf, countedWords } from '../../server/confirmed-count.ts'
import { redirect, show } from '../../server/page.ts'
import { TEXTS } from '../../texts.ts'
import { backgroundJobAnswer } from '../background-job.ts'
import { pausedSenderAlerts } from '../stopped.ts'

const PATH = '/operator/queues'

const button = ({ queue, paused }: ShownQueue): Cell =>
  paused
    ? buttonCell(`${PATH}/${queue}/resume`, 'Resume queue')
    : buttonCell(`${PATH}/${queue}/pause`, 'Pause queue', { tone: 'quiet' })

/** What waits, as far as it was counted. */
export const counted = (jobs: number): Cell =>
  number(jobs, jobs < MAX_COUNTED ? {} : { text: `≥ ${number(MAX_COUNTED).text}` })

/** Its name; of a paused one since when, and by whom or why. */
function nameCell({ queue, paused, paused_at, paused_by, pause_reason }: ShownQueue, now: Date): Cell {
  if (!paused) return text(queue)
  const cause = pause_reason ?? (paused_by === null ? null : `by ${paused_by}`)
  const since = paused_at === null ? null : time(paused_at, now).age
  const detail = [cause, since].filter((each) => each !== null).join(', ')
  return status(`${queue}, paused`, { tone: 'warn', detail })
}

const RESUME_ALL: Form = press(`${PATH}/restored`, 'Resume all')

/** How many reasons a page lists. */
const MAX_REASONS = 50

/** In the unit that leaves no fraction worth reading. */
export const rate = (perSecond: number): string =>
  perSecond > 0 && perSecond < 1 ? `${Math.round(perSecond * 60)}/min` : `${Math.round(perSecond)}/s`

/** Why a queue stands though it is not paused: what its messages go through takes nothing. */
async function senderAlerts(database: Tx, now: Date): Promise<Alert[]> {
  return pausedSenderAlerts(await listSenders(database), ({ key, paused_until, troubled_at }) => {
    const queue = DELIVERIES.find((channel) => sendsFor(channel, key))?.job
    const next = paused_until === null ? 'being probed now' : `next probe ${countdown(paused_until, now)}`
    return {
      tone: 'warn',
      title: `${queue} waits: ${key} is paused, ${next}${troubled_at === null ? '' : ', since'}`,
      at: troubled_at === null ? undefined : time(troubled_at, now),
      link: { href: '/operator/senders', label: 'Senders' },
    }
  })
}

const queues = get('operator', PATH, async ({ now }, { database }) => {
  const rows = await listQueues(database)
  const isCopy = rows.some(({ pause_reason }) => pause_reason === RESTORED)
  const alerts = [isCopy && RESTORED_COPY, ...(await senderAlerts(database, now))]
  return show({
    title: 'Queues',
    actions: isCopy ? { forms: [RESUME_ALL] } : undefined,
    lead: 'Ready jobs wait for a worker, deferred ones for their time; dead letters wait for you.',
    sections: [
      ...alertsOf(alerts, { title: 'Why queues are paused' }),
      tableOf(
        rows,
        (queue) => ({
          Queue: nameCell(queue, now),
          Ready: counted(queue.ready),
          Active: number(queue.active),
          Deferred: counted(queue.deferred),
          Dead:
            queue.dead === 0
              ? number(0)
              : { ...counted(queue.dead), href: `${PATH}/${queue.queue}`, detail: 'why, and try again' },
          'Oldest waits': text(
            queue.oldest_ready_seconds === null ? null : duration(queue.oldest_ready_seconds),
            { number: true },
          ),
          Done: text(rate(queue.completed_per_second), { number: true }),
          Workers: number(queue.workers.length),
          Pause: button(queue),
        }),
        { id: 'queues', live: true, empty: '' },
      ),
    ],
  })
})

/** The queue that a path names. @throws RequestError not_found. */
function queueOf({ queue }: Readonly<Record<string, string>>): JobName {
  const known = QUEUES.find((name) => name === queue)
  if (known === undefined) throw new RequestError('not_found', TEXTS.noQueue)
  return known
}

const reasons = get('operator', `${PATH}/:queue`, async ({ params, now }, { database }) => {
  const queue = queueOf(params)
  const seen = await seenNow(database)
  const rows = await deadReasons(database, queue, MAX_REASONS)
  const all = await countDeadLetters(database, queue)
  const action = `${PATH}/${queue}/redrive`
  return show({
    title: `Dead letters of ${queue}`,
    back: { href: PATH, label: 'Queues' },
    lead: 'What was given up, by its reason. Fix the cause, then try again.',
    sections: compact([
      tableOf(
        rows,
        ({ reason, count, teams, first_at, last_at, samples }) => ({
          Reason: text(reason),
          'Dead letters': number(count),
          Teams: number(teams),
          First: time(first_at, now),
          Last: time(last_at, now),
          'The newest': text(samples.join(' '), { code: true }),
          'Try again': buttonCell(action, `Try ${plural(count, 'dead letter')} again`, {
            sends: { reason, ...countedWords({ most: count, seen }) },
          }),
        }),
        { wrap: ['Reason', 'The newest'], empty: 'Nothing of this queue was given up.' },
      ),
      rows.length >= 2 && {
        kind: 'actions',
        forms: [
          press(action, 'Try all again', { fields: countedFields({ most: all, seen }), tone: 'quiet' }),
        ],
      },
    ]),
  })
})

const pause = act(
  'operator',
  `${PATH}/:queue/pause`,
  async (by, { params }) => {
    const queue = queueOf(params)
    await pauseQueue(by, queue)
    return redirect(PATH, `${queue} is paused. Workers finish what they have.`)
  },
  ({ params }) => ({
    question: `Pause ${queueOf(params)}? What it holds waits until you resume it.`,
    answer: 'Pause queue',
  }),
)

const resume = act('operator', `${PATH}/:queue/resume`, async (by, request) => {
  const queue = queueOf(request.params)
  await resumeQueue(by, queue)
  return redirect(PATH, `${queue} is resumed.`)
})

const resumeCopy = act(
  'operator',
  `${PATH}/restored`,
  async (by) => {
    const { queues: resumed, broadcasts } = await resumeRestored(by)
    return redirect(PATH, `${plural(resumed.length, 'queue')} and ${plural(broadcasts, 'broadcast')} go on.`)
  },
  () => ({
    question:
      'Resume everything that has been paused since the database was restored? What waits goes out, and some of it may have gone out before.',
    answer: 'Resume all',
  }),
)

const redrive = post(
  'operator',
  `${PATH}/:queue/redrive`,
  async (request, deps) => {
    const queue = queueOf(request.params)
    const counted = countedOf(request.form)
    const job = await beginBackgroundJob(deps, {
      kind: 'queue.redrive',
      given: { queue, reason: request.form.get('reason'), ...counted },
      total: counted.most,
      team_id: null,
      actor: request.person.email,
    })
    return backgroundJobAnswer(job, PATH, `${plural(job.done, 'job')} of ${queue} will be tried again.`)
  },
  ({ params, form }) => {
    const many = plural(countedOf(form).most, 'dead letter')
    return { question: `Try ${many} of ${queueOf(params)} again?`, answer: `Try ${many} again` }
  },
)

export const queuePages = [queues, reasons, pause, resume, resumeCopy, redrive]
