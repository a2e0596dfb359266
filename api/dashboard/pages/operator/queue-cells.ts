/** The cells and alerts about queues on the operator's pages. Pure. */

import { deliveryOfSender } from '../../../../db/channels/channels.sql.ts'
import type { ShownQueue } from '../../../../db/delivery/queues.ts'
import type { ShownSender } from '../../../../db/delivery/senders/show.ts'
import { MAX_COUNTED } from '../../../../db/queue/jobs.sql.ts'
import type { ProcessRow } from '../../../../db/stats/fleet/fleet.sql.ts'
import { SILENT_AFTER_S } from '../../../../db/stats/fleet/fleet.ts'
import { type Cell, countdown, duration, number, status, text, time } from '../../components/cell.ts'
import type { Alert } from '../../components/section.ts'
import { compact } from '../../server/builders.ts'
import { isPaused, senderName } from '../stopped.ts'
import { queueName, queueRemedy, WATCHED } from './queue-names.ts'
import { workerAlerts } from './workers.ts'

export const QUEUES_PATH = '/operator/queues'

/** Formats a number of jobs that was counted up to a limit. */
export const counted = (jobs: number): Cell =>
  number(jobs, jobs < MAX_COUNTED ? {} : { text: `${number(MAX_COUNTED).text}+` })

/** Formats a rate per second, or per minute if it is below 1. */
export const rate = (perSecond: number): string =>
  perSecond > 0 && perSecond < 1 ? `${Math.round(perSecond * 60)}/min` : `${Math.round(perSecond)}/s`

function describePause({ paused_at, paused_by, pause_reason }: ShownQueue, now: Date): string {
  const cause = pause_reason ?? (paused_by !== null && `by ${paused_by}`)
  return compact<string>([cause, paused_at !== null && time(paused_at, now).age]).join(', ')
}

/** Builds the cell with a queue's name. A paused one has the cause and time. */
export function nameCell(shown: ShownQueue, now: Date): Cell {
  const { queue, paused } = shown
  const [name, href] = [queueName(queue), `${QUEUES_PATH}/${queue}`]
  if (!paused) return text(name, { href, tip: queue })
  return status(`${name}, paused`, { tone: 'warn', href, detail: describePause(shown, now) })
}

const queueOfSender = ({ key, name }: Pick<ShownSender, 'key' | 'name'>): string =>
  deliveryOfSender(key, name).channel.job

/** Returns the workers of a queue that are running. The queue also names workers seen within an hour. */
export const runningWorkers = ({ workers }: ShownQueue, now: Date) =>
  workers.filter(({ seen_at }) => now.getTime() - Date.parse(seen_at) <= SILENT_AFTER_S * 1_000)

/** True for a queue with waiting jobs and without a running worker. */
export const isUnattended = (shown: ShownQueue, now: Date): boolean =>
  runningWorkers(shown, now).length === 0 && shown.ready + shown.deferred > 0

/** Builds the cell with the number of running workers, which is bad without any if jobs wait. */
export const workersCell = (shown: ShownQueue, now: Date): Cell =>
  number(runningWorkers(shown, now).length, { tone: isUnattended(shown, now) ? 'bad' : undefined })

/** Returns alerts for queues without a running worker. A pause is more important. */
const unattendedAlerts = (queues: readonly ShownQueue[], now: Date): Alert[] =>
  queues
    .filter((shown) => isUnattended(shown, now) && !shown.paused)
    .map(({ queue, ready, deferred }) => ({
      tone: 'bad',
      title: `No worker processes the queue ${queueName(queue)}`,
      text: `Waiting: ${counted(ready + deferred).text}. ${queueRemedy(queue)}`,
      link: { href: `${QUEUES_PATH}/${queue}`, label: 'Show queue' },
    }))

/** Returns the alert for an installation without a running worker, otherwise those for single queues. */
export function workAlerts(processes: readonly ProcessRow[], queues: readonly ShownQueue[], now: Date) {
  const without = workerAlerts(processes, now)
  return without.length > 0 ? without : unattendedAlerts(queues, now)
}

type WaitingJobs = { ready: number; deferred: number }

/** Describes how many of the waiting jobs are deferred. */
function deferredWords({ ready, deferred }: WaitingJobs): string {
  if (ready > 0) return `${counted(deferred).text} deferred`
  return deferred === 1 ? 'deferred' : 'all deferred'
}

/** Describes waiting jobs. @param oldest the age of the oldest ready one in seconds. */
export const waitingWords = (jobs: WaitingJobs, oldest: number | null, cause = ''): string =>
  compact<string>([
    oldest !== null && `the oldest for ${duration(oldest)}`,
    jobs.deferred > 0 && deferredWords(jobs),
    cause,
  ]).join(', ')

/** Formats how long the oldest due job has waited. */
export const oldestDue = ({ oldest_ready_seconds: oldest }: ShownQueue): string =>
  oldest === null ? '–' : duration(oldest)

/** Returns why the jobs of a queue wait, or '' if nothing stops them. */
export function waitCause(shown: ShownQueue, senders: readonly ShownSender[], now: Date): string {
  const { queue, paused, ready, deferred } = shown
  if (ready + deferred === 0) return ''
  if (paused) return 'queue paused'
  if (isUnattended(shown, now)) return 'no worker'
  const own = senders.filter((sender) => queueOfSender(sender) === queue)
  const stopped = own.filter(isPaused).length
  if (stopped === 0) return ''
  return own.length === 1 ? 'sender paused' : `${stopped} of ${own.length} senders paused`
}

/** Builds the cell with the number of waiting jobs and why they wait. It is coloured if something stops them. */
function waitingCell(shown: ShownQueue, senders: readonly ShownSender[], now: Date): Cell {
  const { ready, deferred, oldest_ready_seconds: oldest } = shown
  const cause = waitCause(shown, senders, now)
  return {
    ...counted(ready + deferred),
    tone: cause === '' ? undefined : 'warn',
    detail: waitingWords({ ready, deferred }, oldest, cause),
  }
}

const failedCell = ({ queue, dead }: ShownQueue): Cell =>
  dead === 0 ? number(0) : { ...counted(dead), href: `${QUEUES_PATH}/${queue}`, detail: 'see why' }

/** True for a watched or paused queue, or one with jobs. */
export const isShown = ({ queue, ready, active, deferred, dead, paused }: ShownQueue): boolean =>
  WATCHED.includes(queue) || paused || ready + active + deferred + dead > 0

export const queueCells =
  (now: Date, senders: readonly ShownSender[]) =>
  (queue: ShownQueue): Record<string, Cell> => ({
    Queue: nameCell(queue, now),
    Waiting: waitingCell(queue, senders, now),
    Failed: failedCell(queue),
    Rate: text(rate(queue.completed_per_second), { number: true }),
  })

/** Returns the paused senders of a queue. */
export const sendersOf = (queue: string, senders: readonly ShownSender[]): ShownSender[] =>
  senders.filter((sender) => isPaused(sender) && queueOfSender(sender) === queue)

/** Returns alerts for queues whose jobs wait for a paused sender. @param senders those with waiting jobs. */
export const waitAlerts = (senders: readonly ShownSender[], now: Date): Alert[] =>
  senders.map(({ key, name, reason, paused_until }) => ({
    tone: 'bad',
    title: `The queue ${queueName(queueOfSender({ key, name }))} is waiting for ${senderName({ key, name })}`,
    text: compact<string>([
      reason?.replace(/\.?$/, '.'),
      paused_until ? `Next attempt ${countdown(paused_until, now)}.` : 'A test attempt is in progress.',
    ]).join(' '),
    link: { href: '/operator/senders', label: 'Show senders' },
  }))
