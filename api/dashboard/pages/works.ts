/** Background jobs: what a team's people, or operators, have begun lately, and how far each has come. */

import { Refusal } from '../../../db/errors.ts'
import { latestWorks, type WorkRow, workById } from '../../../db/upkeep/work/works.sql.ts'
import { number, status, text, time } from '../drawn/cell.ts'
import { paceWords } from '../drawn/pace.ts'
import type { Section, View } from '../drawn/section.ts'
import { factsOf, get, tableOf } from '../served/made.ts'
import { show, teamPath } from '../served/page.ts'
import { wordsOf, workPath } from './work.ts'

/** How many are listed. */
const LATEST = 50

const stateOf = ({ finished_at, fault }: WorkRow): string =>
  fault !== null ? 'failed' : finished_at === null ? 'running' : 'done'

/** For how long a job goes on before its pace says something, in milliseconds. */
const TELLING = 10_000

/** How fast a job goes on and how long it may take still; '' for one that is over. */
const paceOf = ({ done, total, begun_at, finished_at }: WorkRow, now: Date): string =>
  finished_at !== null || total === null
    ? ''
    : paceWords({ done, left: total - done, since: begun_at }, now, { noun: 'item', least: TELLING })

/** How far a job has come, of how many where that is known. */
const doneWords = ({ done, total }: WorkRow): string =>
  total === null ? number(done).text : `${number(done).text} of ${number(total).text}`

function listView(works: readonly WorkRow[], now: Date): View {
  return {
    title: 'Background jobs',
    lead: 'Imports and bulk actions that take longer than a page should. Workers carry on where one of them stopped.',
    sections: [
      tableOf(
        works,
        (work) => ({
          What: text(wordsOf(work).title, { href: workPath(work) }),
          State: status(stateOf(work), { detail: paceOf(work, now) }),
          Done: text(doneWords(work), { number: true }),
          By: text(work.begun_by),
          Started: time(work.begun_at, now),
        }),
        {
          id: 'works',
          live: works.some(({ finished_at }) => finished_at === null),
          empty: 'Nothing lately.',
          wrap: ['State'],
        },
      ),
    ],
  }
}

function workView(work: WorkRow, now: Date, back: string): View {
  const { title, verb, outcome } = wordsOf(work)
  const { done, total, finished_at, fault } = work
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
          value: doneWords(work),
          detail: paceOf(work, now),
          filled: total ? Math.round((done / total) * 100) : undefined,
          tone,
        },
      ],
    },
    {
      kind: 'alerts',
      id: 'outcome',
      live,
      calm: 'Workers do it in batches. This page updates by itself, and you need not wait for it.',
      alerts: live ? [] : [fault === null ? { tone, title: outcome(work.result) } : { tone, title: fault }],
    },
    factsOf({
      'Started by': text(work.begun_by),
      Started: time(work.begun_at, now),
      Ended: finished_at !== null && time(finished_at, now),
      ID: text(work.id, { code: true, copy: true }),
    }),
  ]
  return { title, back: { href: back, label: 'Background jobs' }, sections }
}

const found = (work: WorkRow | null): WorkRow => {
  if (work) return work
  throw new Refusal('not_found', 'there is no such job; finished jobs are forgotten after a month')
}

const ofTeam = get('editor', '/teams/:team/works', async ({ team, now }, { database }) =>
  show(listView(await latestWorks(database, team.id, LATEST), now)),
)

const oneOfTeam = get('editor', '/teams/:team/works/:id', async ({ team, params, now }, { database }) =>
  show(workView(found(await workById(database, team.id, params.id)), now, teamPath(team, 'works'))),
)

const all = get('operator', '/operator/works', async ({ now }, { database }) =>
  show(listView(await latestWorks(database, null, LATEST), now)),
)

const one = get('operator', '/operator/works/:id', async ({ params, now }, { database }) =>
  show(workView(found(await workById(database, null, params.id)), now, '/operator/works')),
)

export const workPages = [ofTeam, oneOfTeam, all, one]
