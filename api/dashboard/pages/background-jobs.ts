/** Lists recent background jobs of a team, or of all for operators, with progress and result. Stops them. */

import { namesOfTeams } from '../../../db/accounts/teams/directory.sql.ts'
import { importFileNames } from '../../../db/audience/import/imports.sql.ts'
import {
  type BackgroundJobRow,
  backgroundJobById,
  latestBackgroundJobs,
} from '../../../db/maintenance/background-jobs/background-jobs.sql.ts'
import { isStoppable, stopBackgroundJob, stoppedBy } from '../../../db/maintenance/background-jobs/stop.ts'
import type { Tx } from '../../../db/postgres/pool.ts'
import { actorName } from '../components/action-labels.ts'
import { bar, type Cell, headed, number, status, text, time } from '../components/cell.ts'
import { leftWords, paceWords } from '../components/pace.ts'
import type { Section, View } from '../components/section.ts'
import { already, requireFound } from '../server/already.ts'
import { action, buildAlerts, buildFacts, buildTable, button, compact, get } from '../server/builders.ts'
import { type PageAnswer, type Question, redirect, show, teamPath } from '../server/page.ts'
import { TEXTS } from '../texts.ts'
import { backgroundJobPath, describeRun, describeStart, findJobTexts, resultLink } from './background-job.ts'
import { describeAims } from './background-job-aims.ts'

const OPERATOR_PATH = '/operator/background-jobs'
const JOBS_SHOWN = 50

const TONES = { running: 'busy', done: 'good', failed: 'bad', stopped: 'plain' } as const
type JobState = keyof typeof TONES

function stateOf(job: BackgroundJobRow): JobState {
  if (job.fault !== null) return 'failed'
  if (job.finished_at === null) return 'running'
  return stoppedBy(job) === null ? 'done' : 'stopped'
}

/** How long a job runs before its rate is shown, in milliseconds. */
const PACE_SHOWN_AFTER_MS = 10_000

/** Returns the pace of a job. Nothing is left of one that has finished or whose total is unknown. */
const toPace = ({ done, total, begun_at, progressed_at, finished_at }: BackgroundJobRow) => ({
  done,
  left: finished_at !== null || total === null ? 0 : total - done,
  since: begun_at,
  progressed_at,
})

const describePace = (job: BackgroundJobRow, now: Date): string =>
  paceWords(toPace(job), now, { noun: findJobTexts(job).noun ?? 'item', least: PACE_SHOWN_AFTER_MS })

const doneWords = ({ done, total }: BackgroundJobRow): string =>
  total === null ? number(done).text : `${number(done).text} of ${number(total).text}`

const stateCell = (state: JobState): Cell => status(state, { tone: TONES[state] })

/** Shows the progress of a running job as a bar if its total is known, and the result of a finished one. */
function progressCell(job: BackgroundJobRow, now: Date): Cell {
  const { done, total, finished_at } = job
  const left = leftWords(toPace(job), now, PACE_SHOWN_AFTER_MS)
  const words = compact<string>([doneWords(job), left]).join(', ')
  if (finished_at !== null) return text(words, { detail: describeResult(job) || undefined })
  return total ? { ...bar(done, total, 'busy'), detail: words } : text(words)
}

function describeResult(job: BackgroundJobRow): string {
  const result = findJobTexts(job).outcome(job.result)
  const stopper = stoppedBy(job)
  return job.fault ?? (stopper === null ? result : `Stopped by ${actorName(stopper)}. ${result}`)
}

const teamIds = (jobs: readonly BackgroundJobRow[]): string[] => [
  ...new Set(jobs.flatMap(({ team_id }) => team_id ?? [])),
]

const isImport = ({ kind }: BackgroundJobRow): boolean => kind.endsWith('.import')

/** Returns the file names of jobs that are imports. An import has the ID of its job. */
async function filesOf(tx: Tx, jobs: readonly BackgroundJobRow[]): Promise<Map<string, string>> {
  const imports = jobs.filter(isImport)
  const ids = imports.map(({ id }) => id)
  return ids.length === 0 ? new Map() : importFileNames(tx, teamIds(imports), ids)
}

type TeamNames = ReadonlyMap<string, string>

const teamCell = ({ team_id: id }: BackgroundJobRow, teams: TeamNames): Cell =>
  id === null ? text('all teams') : text(teams.get(id) ?? id, { href: `/operator/teams/${id}` })

/** @param of the ID of a team, or null for operators, who also see the names of teams. */
async function listView(tx: Tx, of: string | null, now: Date): Promise<View> {
  const jobs = await latestBackgroundJobs(tx, of, JOBS_SHOWN)
  const teams = of === null ? await namesOfTeams(tx, teamIds(jobs)) : null
  const files = await filesOf(tx, jobs)
  const aims = of === null ? new Map<string, string>() : await describeAims(tx, of, jobs)
  return {
    title: 'Background jobs',
    lead: 'Imports and large bulk actions of the last 30 days. If a worker stops, another one continues its jobs.',
    sections: [
      buildTable(
        jobs,
        (job) => ({
          Job: text(files.get(job.id) ?? findJobTexts(job).title, {
            href: teams === null ? backgroundJobPath(job) : `${OPERATOR_PATH}/${job.id}`,
            detail: compact<string>([
              files.has(job.id) ? findJobTexts(job).title : aims.get(job.id),
              `by ${actorName(job.begun_by)}`,
            ]).join(' · '),
          }),
          Status: stateCell(stateOf(job)),
          Team: teams !== null && teamCell(job, teams),
          Progress: progressCell(job, now),
          Started: time(job.begun_at, now),
        }),
        {
          id: 'background-jobs',
          live: jobs.some(({ finished_at }) => finished_at === null),
          wrap: ['Job', 'Team'],
          empty: 'No background jobs in the last 30 days.',
        },
      ),
    ],
  }
}

function progressTile(job: BackgroundJobRow, now: Date): Section {
  const { done, total, finished_at } = job
  const state = stateOf(job)
  return {
    kind: 'tiles',
    id: 'progress',
    live: finished_at === null,
    tiles: [
      {
        label: findJobTexts(job).verb,
        value: doneWords(job),
        detail: headed(describePace(job, now)),
        filled: total ? Math.round((done / total) * 100) : undefined,
        tone: TONES[state],
      },
    ],
  }
}

/** @param team the ID of its team, or null for any. @throws RequestError not_found. */
const requireJob = async (tx: Tx, team: string | null, id: string): Promise<BackgroundJobRow> =>
  requireFound(await backgroundJobById(tx, team, id), TEXTS.noJob)

/** @param of the ID of its team, or null for operators, who also see the name of the team. */
async function jobView(tx: Tx, of: string | null, job: BackgroundJobRow, now: Date): Promise<View> {
  const here = of === null ? OPERATOR_PATH : teamPath({ id: of }, 'background-jobs')
  const file = (await filesOf(tx, [job])).get(job.id)
  const team = of === null && teamCell(job, await namesOfTeams(tx, teamIds([job])))
  const aim = of === null ? '' : (await describeAims(tx, of, [job])).get(job.id)
  const { title } = findJobTexts(job)
  const { finished_at, fault } = job
  return {
    title: file ?? title,
    state: stateCell(stateOf(job)),
    lead: fault === null ? (finished_at === null ? describeRun(job) : describeResult(job)) : undefined,
    back: { href: here, label: 'Background jobs' },
    actions: {
      // An import is deleted before its job.
      links: compact([(!isImport(job) || file !== undefined) && resultLink(job)]),
      forms: isStoppable(job) ? [button(`${here}/${job.id}/stop`, 'Stop job', { tone: 'danger' })] : [],
    },
    sections: compact([
      buildAlerts([fault !== null && { tone: 'bad', title: fault }], { id: 'outcome' }),
      progressTile(job, now),
      buildFacts({
        Job: file !== undefined && text(title),
        Search: aim && text(aim),
        Team: team,
        ...describeStart(job, now),
      }),
    ]),
  }
}

function askToStop(job: BackgroundJobRow): Question {
  if (job.finished_at !== null) throw already('This job', 'finished')
  return {
    question: `Stop “${findJobTexts(job).title}”?`,
    answer: 'Stop job',
    keep: 'Let it run',
    warning: `Done: ${doneWords(job)}. Changes made so far stay. The rest isn’t changed.`,
    tone: 'danger',
  }
}

const stopped = (job: BackgroundJobRow | null, path: string): PageAnswer =>
  redirect(path, job === null ? { tone: 'bad', text: TEXTS.jobNotStopped } : 'The job was stopped.')

const ofTeam = get('editor', '/teams/:team/background-jobs', async ({ team, now }, { database }) =>
  show(await listView(database, team.id, now)),
)

/** Shows a job, or leads to the page of its import, which also has the result. */
const oneOfTeam = get('editor', '/teams/:team/background-jobs/:id', async (request, { database }) => {
  const { team, params, now } = request
  const job = await requireJob(database, team.id, params.id)
  const files = await filesOf(database, [job])
  return files.has(job.id)
    ? redirect(teamPath(team, 'contacts', 'imports', job.id))
    : show(await jobView(database, team.id, job, now))
})

const stopOfTeam = action('editor', '/teams/:team/background-jobs/:id/stop', async (by, { team, params }) => {
  const { id } = await requireJob(by.tx, team.id, params.id)
  return stopped(await stopBackgroundJob(by, team.id, id), teamPath(team, 'background-jobs', id))
}).confirm(async ({ team, params }, deps) => askToStop(await requireJob(deps.database, team.id, params.id)))

const all = get('operator', OPERATOR_PATH, async ({ now }, { database }) =>
  show(await listView(database, null, now)),
)

const one = get('operator', `${OPERATOR_PATH}/:id`, async ({ params, now }, { database }) =>
  show(await jobView(database, null, await requireJob(database, null, params.id), now)),
)

const stop = action('operator', `${OPERATOR_PATH}/:id/stop`, async (by, { params }) => {
  const { id } = await requireJob(by.tx, null, params.id)
  return stopped(await stopBackgroundJob(by, null, id), `${OPERATOR_PATH}/${id}`)
}).confirm(async ({ params }, deps) => askToStop(await requireJob(deps.database, null, params.id)))

export const backgroundJobPages = [ofTeam, oneOfTeam, stopOfTeam, all, one, stop]
