/**
 * Shows queues with their jobs, rates and workers. Pauses and resumes them, and retries failed jobs by
 * reason.
 */

import { deliveryOfSender } from '../../../../db/channels/channels.sql.ts'
import {
  listQueues,
  pauseQueue,
  QUEUES,
  resumeQueue,
  type ShownQueue,
  withParts,
} from '../../../../db/delivery/queues.ts'
import { listSenders, type ShownSender } from '../../../../db/delivery/senders/show.ts'
import { RequestError } from '../../../../db/errors.ts'
import { beginBackgroundJob } from '../../../../db/maintenance/background-jobs/background-jobs.ts'
import { resumeRestored } from '../../../../db/maintenance/restore-guard/restored.ts'
import { seenNow } from '../../../../db/postgres/snapshot.sql.ts'
import { countDeadLetters, deadReasons } from '../../../../db/queue/dead-letters.sql.ts'
import { MAX_COUNTED } from '../../../../db/queue/jobs.sql.ts'
import type { JobName } from '../../../../db/queue/jobs.ts'
import { pausedQueues, RESTORED } from '../../../../db/queue/pauses.sql.ts'
import { SILENT_AFTER_S } from '../../../../db/stats/fleet/fleet.ts'
import { type Cell, countdown, duration, number, plural, status, text, time } from '../../components/cell.ts'
import type { Alert, Form, Section, Tile } from '../../components/section.ts'
import { pausedQueue, RESTORED_COPY } from '../../components/timeline.ts'
import { already, noneLeft } from '../../server/already.ts'
import {
  action,
  buildAlerts,
  buildFacts,
  buildTable,
  button,
  buttonCell,
  compact,
  get,
  post,
} from '../../server/builders.ts'
import { countedFields, countedValues, readCounted } from '../../server/confirmed-count.ts'
import { redirect, show } from '../../server/page.ts'
import { TEXTS } from '../../texts.ts'
import { backgroundJobAnswer } from '../background-job.ts'
import { isPaused, pausedSenderAlerts } from '../stopped.ts'
import { queueName } from './queue-names.ts'

const PATH = '/operator/queues'

const pauseCell = ({ queue, paused }: ShownQueue): Cell =>
  paused
    ? buttonCell(`${PATH}/${queue}/resume`, 'Resume queue')
    : buttonCell(`${PATH}/${queue}/pause`, 'Pause queue', { tone: 'quiet' })

/** Formats a number of jobs that was counted up to a limit. */
export const counted = (jobs: number): Cell =>
  number(jobs, jobs < MAX_COUNTED ? {} : { text: `≥ ${number(MAX_COUNTED).text}` })

/** Builds the cell with a queue's name. A paused one has the cause and time. */
export function nameCell({ queue, paused, paused_at, paused_by, pause_reason }: ShownQueue, now: Date): Cell {
  const [name, href] = [queueName(queue), `${PATH}/${queue}`]
  if (!paused) return text(name, { href, detail: queue })
  const cause = pause_reason ?? (paused_by === null ? null : `by ${paused_by}`)
  const since = paused_at === null ? null : time(paused_at, now).age
  const detail = [queue, cause, since].filter((each) => each !== null).join(', ')
  return status(`${name}, paused`, { tone: 'warn', href, detail })
}

const RESUME_ALL: Form = button(`${PATH}/restored`, 'Resume all')

/** Maximum number of reasons on a page. */
const MAX_REASONS = 50

/** Formats a rate per second, or per minute if it is below 1. */
export const rate = (perSecond: number): string =>
  perSecond > 0 && perSecond < 1 ? `${Math.round(perSecond * 60)}/min` : `${Math.round(perSecond)}/s`

const queueOfSender = ({ key, name }: Pick<ShownSender, 'key' | 'name'>): string =>
  deliveryOfSender(key, name).channel.job

/** Returns the workers of a queue that are running. The queue also names workers seen within an hour. */
const runningWorkers = ({ workers }: ShownQueue, now: Date) =>
  workers.filter(({ seen_at }) => now.getTime() - Date.parse(seen_at) <= SILENT_AFTER_S * 1_000)

/** Returns why the jobs of a queue wait, or '' if nothing stops them. */
export function waitCause(shown: ShownQueue, senders: readonly ShownSender[], now: Date): string {
  const { queue, paused, ready, deferred } = shown
  if (ready + deferred === 0) return ''
  if (paused) return 'queue paused'
  if (runningWorkers(shown, now).length === 0) return 'no worker'
  const isStopped = senders.some((sender) => isPaused(sender) && queueOfSender(sender) === queue)
  return isStopped ? 'sender paused' : ''
}

/** Returns alerts for queues that wait for a paused sender. @param only the name of the only queue. */
function senderAlerts(senders: readonly ShownSender[], now: Date, only?: string): Alert[] {
  const those = senders.filter((sender) => only === undefined || queueOfSender(sender) === only)
  return pausedSenderAlerts(those, ({ key, name, paused_until, troubled_at }) => {
    const queue = queueOfSender({ key, name })
    const next =
      paused_until === null ? 'A test attempt is in progress' : `Next attempt ${countdown(paused_until, now)}`
    return {
      tone: 'warn',
      title: `${queue} is waiting, because ${key} is paused. ${next}${troubled_at === null ? '' : '. Paused since'}`,
      at: troubled_at === null ? undefined : time(troubled_at, now),
      link: { href: '/operator/senders', label: 'Senders' },
    }
  })
}

/** Builds the cell with the number of failed jobs and a link to their reasons. */
export const failedCell = ({ queue, dead }: ShownQueue): Cell =>
  dead === 0 ? number(0) : { ...counted(dead), href: `${PATH}/${queue}`, detail: 'see why' }

const queues = get('operator', PATH, async ({ now }, { database }) => {
  const rows = await listQueues(database)
  const isCopy = rows.some(({ pause_reason }) => pause_reason === RESTORED)
  const senders = await listSenders(database)
  const alerts = [isCopy && RESTORED_COPY, ...senderAlerts(senders, now)]
  return show({
    title: 'Queues',
    actions: isCopy ? { forms: [RESUME_ALL] } : undefined,
    lead: 'Ready jobs wait for a worker, deferred jobs for their next attempt. Failed jobs need manual action.',
    sections: [
      ...buildAlerts(alerts, { title: 'Why queues are paused', id: 'needs' }),
      buildTable(
        rows,
        (queue) => ({
          Queue: nameCell(queue, now),
          Ready: counted(queue.ready),
          Active: number(queue.active),
          Deferred: counted(queue.deferred),
          Failed: failedCell(queue),
          'Oldest waits': text(
            queue.oldest_ready_seconds === null ? null : duration(queue.oldest_ready_seconds),
            { number: true, detail: waitCause(queue, senders, now) || undefined },
          ),
          Done: text(rate(queue.completed_per_second), { number: true }),
          Workers: number(runningWorkers(queue, now).length),
          Pause: pauseCell(queue),
        }),
        { id: 'queues', live: true, empty: '' },
      ),
    ],
  })
})

/** Returns the queue in a path. @throws RequestError not_found. */
function readQueue({ queue }: Readonly<Record<string, string>>): JobName {
  const known = QUEUES.find((name) => name === queue)
  if (known === undefined) throw new RequestError('not_found', TEXTS.noQueue)
  return known
}

/** Builds a queue's tiles, and the facts about its pause. */
const buildSections = (queue: ShownQueue, now: Date): Section[] => {
  const oldest = queue.oldest_ready_seconds
  const workers = runningWorkers(queue, now)
  const tiles: Tile[] = [
    {
      label: 'Ready',
      value: counted(queue.ready).text,
      detail: oldest === null ? undefined : `the oldest for ${duration(oldest)}`,
    },
    { label: 'Active', value: number(queue.active).text },
    { label: 'Deferred', value: counted(queue.deferred).text },
    { label: 'Done', value: rate(queue.completed_per_second) },
    {
      label: 'Workers',
      value: number(workers.length).text,
      detail: workers.map(({ host, pid }) => `${host} (${pid})`).join(', '),
    },
  ]
  const pause = {
    'Paused since': queue.paused_at !== null && time(queue.paused_at, now),
    'Paused by': text(queue.pause_reason ?? queue.paused_by),
  }
  return compact([
    { kind: 'tiles', id: 'tiles', live: true, tiles },
    queue.paused && buildFacts(pause, { id: 'facts', live: true }),
  ])
}

const reasons = get('operator', `${PATH}/:queue`, async ({ params, now }, { database }) => {
  const queue = readQueue(params)
  const shown = (await listQueues(database)).find((one) => one.queue === queue)
  const seen = await seenNow(database)
  const rows = await deadReasons(database, queue, MAX_REASONS)
  const all = await countDeadLetters(database, queue)
  const action = `${PATH}/${queue}/redrive`
  const stops = [
    shown?.paused && pausedQueue(`The queue ${queueName(queue)}`, shown.pause_reason),
    ...senderAlerts(await listSenders(database), now, queue),
  ]
  return show({
    title: queueName(queue),
    lead: queue,
    state: shown?.paused ? status('paused') : undefined,
    back: { href: PATH, label: 'Queues' },
    actions: {
      forms: [
        shown?.paused
          ? button(`${PATH}/${queue}/resume`, 'Resume queue')
          : button(`${PATH}/${queue}/pause`, 'Pause queue', { tone: 'quiet' }),
      ],
    },
    above: buildAlerts(stops, { id: 'needs', live: true }),
    sections: compact([
      shown && buildSections(shown, now),
      buildTable(
        rows,
        ({ reason, count, teams, first_at, last_at, samples }) => ({
          Reason: text(reason),
          Failed: number(count),
          Teams: number(teams),
          First: time(first_at, now),
          Last: time(last_at, now),
          'The newest': text(samples.join(' '), { code: true }),
          Retry: buttonCell(action, `Retry ${plural(count, 'job')}`, {
            sends: { reason, ...countedValues({ most: count, seen }) },
          }),
        }),
        { title: 'Failed jobs', wrap: ['Reason', 'The newest'], empty: 'No failed jobs.' },
      ),
      rows.length >= 2 && {
        kind: 'actions',
        forms: [button(action, 'Retry all', { fields: countedFields({ most: all, seen }), tone: 'quiet' })],
      },
    ]),
  })
})

const pause = action(
  'operator',
  `${PATH}/:queue/pause`,
  async (by, { params }) => {
    const queue = readQueue(params)
    await pauseQueue(by, queue)
    return redirect(PATH, `The queue ${queue} is paused. Jobs already in progress will finish.`)
  },
  async ({ params }, { database }) => {
    const queues = withParts(readQueue(params))
    const shown = (await listQueues(database)).filter((one) => queues.some((queue) => queue === one.queue))
    if (shown.every(({ paused }) => paused)) throw already(`The queue ${params.queue}`, 'paused')
    const waiting = counted(shown.reduce((sum, { ready, deferred }) => sum + ready + deferred, 0)).text
    return {
      question: `Pause ${queues.map(queueName).join(' and ')}? The jobs wait until you resume.`,
      warning: `Waiting now: ${waiting}.`,
      answer: 'Pause queue',
    }
  },
)

const resume = action('operator', `${PATH}/:queue/resume`, async (by, request) => {
  const queue = readQueue(request.params)
  await resumeQueue(by, queue)
  return redirect(PATH, `The queue ${queue} is resumed.`)
})

const resumeCopy = action(
  'operator',
  `${PATH}/restored`,
  async (by) => {
    const { queues: resumed, broadcasts } = await resumeRestored(by)
    return redirect(
      PATH,
      `${plural(resumed.length, 'queue')} and ${plural(broadcasts, 'broadcast')} resumed.`,
    )
  },
  async (_request, { database }) => {
    const pauses = [...(await pausedQueues(database)).values()]
    if (pauses.every(({ reason }) => reason !== RESTORED)) throw already('Everything', 'resumed')
    return {
      question:
        'Resume everything paused by the restore? Queued messages will be sent, and some may already have been sent before the backup was restored.',
      answer: 'Resume all',
    }
  },
)

const redrive = post(
  'operator',
  `${PATH}/:queue/redrive`,
  async (request, deps) => {
    const queue = readQueue(request.params)
    const counted = readCounted(request.form)
    const job = await beginBackgroundJob(deps, {
      kind: 'queue.redrive',
      given: { queue, reason: request.form.get('reason'), ...counted },
      total: counted.most,
      team_id: null,
      actor: request.person.email,
    })
    return backgroundJobAnswer(job, PATH, `${plural(job.done, 'job')} of ${queue} will be retried.`)
  },
  async ({ params, form }, { database }) => {
    const queue = readQueue(params)
    const { most, seen } = readCounted(form)
    const left = await countDeadLetters(database, queue, { reason: form.get('reason'), seen })
    if (left === 0) throw noneLeft()
    const many = plural(Math.min(most, left), 'failed job')
    return { question: `Retry ${many} of ${queueName(queue)}?`, answer: `Retry ${many}` }
  },
)

export const queuePages = [queues, reasons, pause, resume, resumeCopy, redrive]
