/** Lists recent background jobs of a team, or of all teams for operators, with their progress. */

import { RequestError } from '../../../db/errors.ts'
import {
  type BackgroundJobRow,
  backgroundJobById,
  latestBackgroundJobs,
} from '../../../db/maintenance/background-jobs/background-jobs.sql.ts'
import { bar, type Cell, headed, number, status, text, time } from '../components/cell.ts'
import { paceWords } from '../components/pace.ts'
import type { Section, View } from '../components/section.ts'
import { buildFacts, buildTable, get } from '../server/builders.ts'
import { show, teamPath } from '../server/page.ts'
import { TEXTS } from '../texts.ts'
import { backgroundJobPath, findJobTexts } from './background-job.ts'

/** Maximum number of listed jobs. */
const JOBS_SHOWN = 50

const stateOf = ({ finished_at, fault }: BackgroundJobRow): string =>
  fault !== null ? 'failed' : finished_at === null ? 'running' : 'done'

/** How long a job runs before its rate is shown, in milliseconds. */
const PACE_SHOWN_AFTER_MS = 10_000

/** Describes the rate and remaining time of a job, or returns '' if it has finished. */
const describePace = ({ done, total, begun_at, finished_at }: BackgroundJobRow, now: Date): string =>
  finished_at !== null || total === null
    ? ''
    : paceWords({ done, left: total - done, since: begun_at }, now, {
        noun: 'item',
        least: PACE_SHOWN_AFTER_MS,
      })

/** Formats the progress of a job, with the total if it is known. */
const doneWords = ({ done, total }: BackgroundJobRow): string =>
  total === null ? number(done).text : `${number(done).text} of ${number(total).text}`

/** Shows the progress of a running job as a bar if its total is known, otherwise the state. */
function progressCell(job: BackgroundJobRow): Cell {
  const state = stateOf(job)
  const shown = state === 'running' && job.total ? bar(job.done, job.total, 'busy', state) : status(state)
  return { ...shown, detail: doneWords(job) }
}

/** Describes the result of a job, why it failed, or how long it still takes. */
const describeOutcome = (job: BackgroundJobRow, now: Date): string =>
  job.fault ??
  (job.finished_at === null ? headed(describePace(job, now)) : findJobTexts(job).outcome(job.result))

function listView(jobs: readonly BackgroundJobRow[], now: Date): View {
  return {
    title: 'Background jobs',
    lead: 'Imports and large bulk actions. If a worker stops, another one continues its jobs.',
    sections: [
      buildTable(
        jobs,
        (job) => ({
          What: text(findJobTexts(job).title, { href: backgroundJobPath(job), detail: job.begun_by }),
          Progress: progressCell(job),
          Status: text(describeOutcome(job, now)),
          Started: time(job.begun_at, now),
        }),
        {
          id: 'background-jobs',
          live: jobs.some(({ finished_at }) => finished_at === null),
          grow: [],
          wrap: ['Status'],
          empty: 'No recent jobs.',
        },
      ),
    ],
  }
}

function jobView(job: BackgroundJobRow, now: Date, back: string): View {
  const { title, verb, outcome } = findJobTexts(job)
  const { done, total, finished_at, fault } = job
  const live = finished_at === null
  const tone = fault !== null ? 'bad' : live ? 'busy' : 'good'
  const sections: Section[] = [
    {
      kind: 'tiles',
      id: 'progress',
      live,
      tiles: [
        {
          label: fault !== null ? 'Failed' : live ? verb : 'Done',
          value: doneWords(job),
          detail: describePace(job, now),
          filled: total ? Math.round((done / total) * 100) : undefined,
          tone,
        },
      ],
    },
    {
      kind: 'alerts',
      id: 'outcome',
      live,
      calm: 'Running in batches. You don’t have to wait here. It can’t be stopped.',
      alerts: live ? [] : [fault === null ? { tone, title: outcome(job.result) } : { tone, title: fault }],
    },
    buildFacts({
      'Started by': text(job.begun_by),
      Started: time(job.begun_at, now),
      Ended: finished_at !== null && time(finished_at, now),
      ID: text(job.id, { code: true, copy: true }),
    }),
  ]
  return { title, back: { href: back, label: 'Background jobs' }, sections }
}

const found = (job: BackgroundJobRow | null): BackgroundJobRow => {
  if (job) return job
  throw new RequestError('not_found', TEXTS.noJob)
}

const ofTeam = get('editor', '/teams/:team/background-jobs', async ({ team, now }, { database }) =>
  show(listView(await latestBackgroundJobs(database, team.id, JOBS_SHOWN), now)),
)

const oneOfTeam = get(
  'editor',
  '/teams/:team/background-jobs/:id',
  async ({ team, params, now }, { database }) =>
    show(
      jobView(
        found(await backgroundJobById(database, team.id, params.id)),
        now,
        teamPath(team, 'background-jobs'),
      ),
    ),
)

const all = get('operator', '/operator/background-jobs', async ({ now }, { database }) =>
  show(listView(await latestBackgroundJobs(database, null, JOBS_SHOWN), now)),
)

const one = get('operator', '/operator/background-jobs/:id', async ({ params, now }, { database }) =>
  show(jobView(found(await backgroundJobById(database, null, params.id)), now, '/operator/background-jobs')),
)

export const backgroundJobPages = [ofTeam, oneOfTeam, all, one]
