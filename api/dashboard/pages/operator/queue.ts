/** Shows the jobs, rates and workers of a queue. Pauses and resumes it, and retries failed jobs by reason. */

import { namesOfTeams } from '../../../../db/accounts/teams/directory.sql.ts'
import { type DeferredJobs, listDeferrals } from '../../../../db/delivery/deferrals.ts'
import {
  listQueues,
  pauseQueue,
  QUEUES,
  resumeQueue,
  type ShownQueue,
  withParts,
} from '../../../../db/delivery/queues.ts'
import { listSenders } from '../../../../db/delivery/senders/show.ts'
import { beginBackgroundJob } from '../../../../db/maintenance/background-jobs/background-jobs.ts'
import { plural } from '../../../../db/plural.ts'
import type { Tx } from '../../../../db/postgres/pool.ts'
import { seenNow } from '../../../../db/postgres/snapshot.sql.ts'
import { countDeadLetters, deadReasons } from '../../../../db/queue/dead-letters.sql.ts'
import { teamsWaiting } from '../../../../db/queue/jobs.sql.ts'
import type { JobName } from '../../../../db/queue/jobs.ts'
import { liveProcesses } from '../../../../db/stats/fleet/fleet.sql.ts'
import { LISTED_FOR_S } from '../../../../db/stats/fleet/fleet.ts'
import { type Cell, number, status, text, time } from '../../components/cell.ts'
import type { Alert, Section, Tile } from '../../components/section.ts'
import { pausedQueue } from '../../components/timeline.ts'
import { already, noneLeft, requireFound } from '../../server/already.ts'
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
import { pauseAlerts } from './overview-alerts.ts'
import { pauseEffects } from './pause-effects.ts'
import {
  counted,
  oldestDue,
  QUEUES_PATH,
  rate,
  runningWorkers,
  sendersOf,
  waitCause,
  waitingWords,
  workAlerts,
  workersCell,
} from './queue-cells.ts'
import { queueAbout, queueName } from './queue-names.ts'

const MAX_REASONS = 50

/** Returns the queue in a path. @throws RequestError not_found. */
const readQueue = ({ queue }: Readonly<Record<string, string>>): JobName =>
  requireFound(
    QUEUES.find((name) => name === queue),
    TEXTS.noQueue,
  )

/** @param hasAlert true if an alert names the missing worker. */
function tilesSection(
  queue: ShownQueue,
  { cause, hasAlert }: { cause: string; hasAlert: boolean },
  now: Date,
): Section {
  const workers = workersCell(queue, now)
  const tiles: Tile[] = [
    {
      label: 'Waiting',
      value: counted(queue.ready + queue.deferred).text,
      detail: waitingWords(queue, null, hasAlert ? '' : cause) || undefined,
      tone: cause === '' ? undefined : 'warn',
    },
    { label: 'Oldest due', value: oldestDue(queue) },
    { label: 'Active', value: number(queue.active).text },
    {
      label: 'Failed',
      value: counted(queue.dead).text,
      detail: queue.dead > 0 ? 'see the reasons below' : undefined,
      tone: queue.dead > 0 ? 'warn' : undefined,
    },
    { label: 'Rate', value: rate(queue.completed_per_second) },
    {
      label: 'Workers',
      value: workers.text,
      detail: workers.text === '0' && !hasAlert ? 'No worker processes it.' : undefined,
      tone: workers.tone,
    },
  ]
  return { kind: 'tiles', id: 'tiles', live: true, tiles }
}

/** Lists the workers that process a queue. */
function workersFacts(queue: ShownQueue, now: Date): Section | false {
  const hosts = runningWorkers(queue, now).map(({ host, pid }) => `${host} (process ${pid})`)
  return hosts.length > 0 && buildFacts({ Workers: text(hosts.join(', ')) }, { id: 'workers', live: true })
}

function pauseAlert({ queue, paused_at: at, paused_by, pause_reason }: ShownQueue, now: Date): Alert {
  const alert = pausedQueue(`The queue ${queueName(queue)}`, pause_reason)
  const by = paused_by === null ? '' : ` by ${paused_by}`
  return at === null ? alert : { ...alert, title: `${alert.title}. Paused${by} since`, at: time(at, now) }
}

/** Maximum number of counted jobs and of listed teams. */
const MAX_WAITING = 2_000
const MAX_TEAMS = 20

/** Lists the teams whose jobs wait. Reports and other jobs without a team aren't counted. */
async function waitingTeams(
  tx: Tx,
  job: JobName,
  { shown, now }: { shown: ShownQueue; now: Date },
): Promise<Section | false> {
  const teams = await teamsWaiting(tx, job, { most: MAX_WAITING, limit: MAX_TEAMS })
  if (teams.length === 0) return false
  const names = await namesOfTeams(
    tx,
    teams.map(({ team_id }) => team_id),
  )
  const isCut = shown.ready + shown.deferred > MAX_WAITING
  return buildTable(
    teams,
    ({ team_id, jobs, due_at }) => ({
      Team: text(names.get(team_id) ?? team_id, { href: `/operator/teams/${team_id}` }),
      'First one due': time(due_at, now),
      Waiting: number(jobs),
    }),
    {
      title: 'Waiting by team',
      id: 'teams',
      live: true,
      note: isCut ? `Counts the ${number(MAX_WAITING).text} jobs that are due first.` : undefined,
      empty: '',
    },
  )
}

/** Maximum number of deferred jobs whose responses are read, and of listed responses. */
const MAX_DEFERRED = 200
const MAX_RESPONSES = 10

/** Lists why jobs are deferred: their last responses. */
const deferralsTable = (deferrals: readonly DeferredJobs[], deferred: number, now: Date): Section =>
  buildTable(
    deferrals.slice(0, MAX_RESPONSES),
    ({ response, jobs, attempts, due_at, id }) => ({
      'Last response': text(response ?? 'No attempt yet'),
      Jobs: number(jobs),
      Attempts: text(response === null ? '–' : `${jobs > 1 && attempts > 1 ? 'up to ' : ''}${attempts}`, {
        number: true,
      }),
      'Next attempt': time(due_at, now),
      'Next ID': samplesCell([id]),
    }),
    {
      title: 'Why jobs are deferred',
      id: 'deferred',
      live: true,
      note: deferred > MAX_DEFERRED ? `Counts the ${MAX_DEFERRED} jobs that are due first.` : undefined,
      wrap: ['Last response'],
      empty: '',
    },
  )

type Reason = Awaited<ReturnType<typeof deadReasons>>[number]

/** Builds the cell with the end of the newest failed job's ID, which leads to its message. */
const samplesCell = ([newest = '', ...others]: readonly string[]): Cell =>
  text(`…${newest.slice(-8)}`, {
    href: `/find?${new URLSearchParams({ q: newest })}`,
    code: true,
    tip: [newest, ...others].join(' '),
  })

const reasonsTable = (reasons: readonly Reason[], redrive: string, seen: string, now: Date): Section =>
  buildTable(
    reasons,
    ({ reason, count, teams, first_at, last_at, samples }) => ({
      Reason: text(reason),
      Failed: number(count),
      Teams: number(teams),
      First: time(first_at, now),
      Last: time(last_at, now),
      'Newest ID': samplesCell(samples),
      '': buttonCell(redrive, `Retry ${plural(count, 'job')}`, {
        tone: 'quiet',
        sends: { reason, ...countedValues({ most: count, seen }) },
      }),
    }),
    {
      title: 'Failed jobs (dead letters)',
      note: reasons.length > 0 ? 'Fix the cause, then retry them.' : undefined,
      wrap: ['Reason'],
      empty: 'No failed jobs.',
    },
  )

const page = get('operator', `${QUEUES_PATH}/:queue`, async ({ params, now }, { database }) => {
  const queue = readQueue(params)
  const here = `${QUEUES_PATH}/${queue}`
  const shown = (await listQueues(database)).find((one) => one.queue === queue)
  const senders = await listSenders(database)
  const without = workAlerts(await liveProcesses(database, LISTED_FOR_S), compact([shown]), now)
  const seen = await seenNow(database)
  const reasons = await deadReasons(database, queue, MAX_REASONS)
  const all = await countDeadLetters(database, queue)
  const deferrals = await listDeferrals(database, queue, MAX_DEFERRED)
  const redrive = `${here}/redrive`
  const pause = shown?.paused && pauseAlert(shown, now)
  const own = sendersOf(queue, senders)
  const paused = pauseAlerts(own, await pauseEffects(database, own), now)
  const hasAlert = without.length + paused.length > 0 || pause !== false
  const retryAll = { fields: countedFields({ most: all, seen }), tone: 'quiet' } as const
  return show({
    title: queueName(queue),
    lead: `${queueAbout(queue)} Its name in metrics and the CLI is ${queue}.`,
    state: shown?.paused ? status('paused', { tone: 'warn' }) : undefined,
    back: { href: QUEUES_PATH, label: 'Queues' },
    actions: {
      forms: compact([
        shown?.paused
          ? button(`${here}/resume`, 'Resume queue')
          : button(`${here}/pause`, 'Pause queue', { tone: 'quiet' }),
        reasons.length >= 2 && button(redrive, 'Retry all', retryAll),
      ]),
    },
    above: buildAlerts(
      [
        ...without.map((alert) => (alert.link?.href === here ? { ...alert, link: undefined } : alert)),
        pause,
        ...paused,
      ],
      { id: 'needs', live: true },
    ),
    sections: compact([
      shown && tilesSection(shown, { cause: waitCause(shown, senders, now), hasAlert }, now),
      shown && (await waitingTeams(database, queue, { shown, now })),
      deferrals.length > 0 && deferralsTable(deferrals, shown?.deferred ?? 0, now),
      reasonsTable(reasons, redrive, seen, now),
      shown && workersFacts(shown, now),
    ]),
  })
})

const pause = action('operator', `${QUEUES_PATH}/:queue/pause`, async (by, { params }) => {
  const queue = readQueue(params)
  await pauseQueue(by, queue)
  return redirect(
    QUEUES_PATH,
    `The queue ${queueName(queue)} is paused. Jobs already in progress will finish.`,
  )
}).confirm(async ({ params }, { database }) => {
  const queues = withParts(readQueue(params))
  const shown = (await listQueues(database)).filter((one) => queues.some((queue) => queue === one.queue))
  if (shown.every(({ paused }) => paused)) throw already(`The queue ${queueName(params.queue)}`, 'paused')
  const waiting = counted(shown.reduce((sum, { ready, deferred }) => sum + ready + deferred, 0)).text
  return {
    question: `Pause ${queues.map(queueName).join(' and ')}? The jobs wait until you resume.`,
    warning: `Waiting now: ${waiting}.`,
    answer: 'Pause queue',
  }
})

const resume = action('operator', `${QUEUES_PATH}/:queue/resume`, async (by, request) => {
  const queue = readQueue(request.params)
  await resumeQueue(by, queue)
  return redirect(QUEUES_PATH, `The queue ${queueName(queue)} is resumed.`)
})

const redrive = post('operator', `${QUEUES_PATH}/:queue/redrive`, async (request, deps) => {
  const queue = readQueue(request.params)
  const counted = readCounted(request.form)
  const job = await beginBackgroundJob(deps, {
    kind: 'queue.redrive',
    given: { queue, reason: request.form.get('reason'), ...counted },
    total: counted.most,
    team_id: null,
    actor: request.person.email,
  })
  return backgroundJobAnswer(
    job,
    QUEUES_PATH,
    `${plural(job.done, 'job')} of ${queueName(queue)} will be retried.`,
  )
}).confirm(async ({ params, form }, { database }) => {
  const queue = readQueue(params)
  const { most, seen } = readCounted(form)
  const left = await countDeadLetters(database, queue, { reason: form.get('reason'), seen })
  if (left === 0) throw noneLeft()
  const many = plural(Math.min(most, left), 'failed job')
  return { question: `Retry ${many} of ${queueName(queue)}?`, answer: `Retry ${many}` }
})

export const queuePages = [page, pause, resume, redrive]
