/** Shows a team's usage, members, plan and number to operators. Suspends and resumes it. */

import { membersOfTeam } from '../../../../db/accounts/members/people.sql.ts'
import { planName } from '../../../../db/accounts/plans/plans.sql.ts'
import { QUOTAS } from '../../../../db/accounts/plans/quotas.ts'
import { readBulkPause } from '../../../../db/accounts/teams/reputation.sql.ts'
import { resumeTeam, suspendTeam } from '../../../../db/accounts/teams/suspend.ts'
import { showTeam } from '../../../../db/accounts/teams/view.ts'
import { stoppedBroadcasts } from '../../../../db/messages/broadcasts/auto-pause.sql.ts'
import { resumeBulk } from '../../../../db/messages/bulk-pause.ts'
import { allNumbers, numberOfTeam } from '../../../../db/messages/whatsapp/numbers.sql.ts'
import { changeTeamNumber } from '../../../../db/messages/whatsapp/team-number.ts'
import { plural } from '../../../../db/plural.ts'
import type { Tx } from '../../../../db/postgres/pool.ts'
import { sendingOfWeek } from '../../../../db/stats/daily/sending.sql.ts'
import { byteWords, dayWords, formatAge, headed, lastActive, status, text } from '../../components/cell.ts'
import type { Form, Section } from '../../components/section.ts'
import { usageTile } from '../../components/usage.ts'
import { already } from '../../server/already.ts'
import {
  action,
  buildAlerts,
  buildFacts,
  buildForm,
  buildOptions,
  buildTable,
  button,
  compact,
  field,
  get,
} from '../../server/builders.ts'
import type { PageDeps } from '../../server/deps.ts'
import { redirect, show, teamPath } from '../../server/page.ts'
import { bulkPausedAlert, groupAlerts, RESUME_BULK, stoppedBroadcastAlerts } from '../stopped.ts'
import { changePlan, pageOfTeam, planForm, TEAMS_PATH } from './team-plan.ts'
import { weekTiles } from './team-shares.ts'

/** Maximum number of listed broadcasts that were paused automatically. */
const MAX_STOPPED = 100

const suspension = (id: string, suspendedAt: string | null): Form =>
  suspendedAt === null
    ? button(`${pageOfTeam(id)}/suspend`, 'Suspend team', { tone: 'danger' })
    : button(`${pageOfTeam(id)}/resume`, 'Resume team')

/** Builds the choice of the team's WhatsApp number, if there are others than the default. */
async function numberForm(teamId: string, tx: Tx): Promise<Section | false> {
  const numbers = await allNumbers(tx)
  if (numbers.length === 0) return false
  const own = (await numberOfTeam(tx, teamId))?.number
  const names = ['default', ...numbers.map(({ name }) => name)]
  const options = buildOptions(names, [own], (name) => (name === 'default' ? 'the default number' : name))
  return buildForm(`${pageOfTeam(teamId)}/number`, 'Save number', {
    title: 'WhatsApp number',
    tone: 'quiet',
    note: 'Waiting messages keep their number. If the new number belongs to another account, the team’s templates are pending until a sync finds them there.',
    fields: [field('number', 'Number', { type: 'select', options, required: true })],
  })
}

const changeNumber = action('operator', `${TEAMS_PATH}/:id/number`, async (by, { params: { id }, form }) => {
  const { number: name, waiting } = await changeTeamNumber(by, id, form.get('number') ?? '')
  const words =
    waiting === 0 ? '' : ` ${plural(waiting, 'waiting message')} will still be sent from the earlier number.`
  return redirect(
    pageOfTeam(id),
    `The team sends from ${name === 'default' ? 'the default number' : `the number ${name}`}.${words}`,
  )
})

const membersTable = async (id: string, { database }: PageDeps, now: Date): Promise<Section> =>
  buildTable(
    await membersOfTeam(database, id),
    ({ email, role, last_seen_at }) => ({
      Member: text(email),
      Role: status(role),
      'Last active': lastActive(last_seen_at, now),
    }),
    {
      title: 'Members',
      empty: 'No members yet. Invite an owner on the team’s Members page.',
      start: { href: teamPath({ id }, 'people'), label: 'Invite members' },
    },
  )

const page = get('operator', `${TEAMS_PATH}/:id`, async ({ params, now }, deps) => {
  const { database } = deps
  const team = await showTeam(database, params.id)
  const { limits, period, used, suspended_at, bulk_paused } = team
  const bulk = bulk_paused && (await readBulkPause(database, team.id))
  const stopped = stoppedBroadcastAlerts(await stoppedBroadcasts(database, team.id, MAX_STOPPED))
  const week = (await sendingOfWeek(database, [team.id])).get(team.id)
  return show({
    title: team.name,
    state: suspended_at === null ? undefined : status('suspended', { tone: 'bad' }),
    back: { href: TEAMS_PATH, label: 'Teams' },
    actions: {
      links: [{ href: teamPath(team), label: 'Open its dashboard', main: true }],
      forms: compact([
        bulk_paused !== null && button(`${pageOfTeam(team.id)}/resume-bulk`, RESUME_BULK),
        suspension(team.id, suspended_at),
      ]),
    },
    lead:
      suspended_at === null
        ? `${team.test ? 'Test team: nothing is delivered. ' : ''}Plan ${await planName(database, team.plan)}. This period: ${dayWords(period.start)} to ${dayWords(period.end)}.`
        : `Suspended ${formatAge(suspended_at, now)}: its credentials are rejected, and queued messages wait.`,
    sections: [
      ...buildAlerts([
        bulk && bulkPausedAlert(bulk, now),
        ...groupAlerts(stopped, `${stopped.length} broadcasts were paused automatically`),
      ]),
      { kind: 'tiles', title: 'The last 7 days', tiles: weekTiles(week) },
      {
        kind: 'tiles',
        title: 'Usage',
        tiles: [
          ...QUOTAS.map(({ name, noun }) => usageTile(headed(noun), used[name], limits[name])),
          usageTile('Attachments', used.storage, limits.storage, { words: byteWords }),
        ],
      },
      ...compact([
        await membersTable(team.id, deps, now),
        await planForm(team, database),
        await numberForm(team.id, database),
      ]),
      buildFacts({ ID: text(team.id, { code: true, copy: true }) }),
    ],
  })
})

const resumeBulkEmail = action(
  'operator',
  `${TEAMS_PATH}/:id/resume-bulk`,
  async (by, { params: { id } }) => {
    const team = await resumeBulk(by, id)
    return redirect(pageOfTeam(id), `Broadcasts and batches of ${team.name} are resumed.`)
  },
)

const suspend = action('operator', `${TEAMS_PATH}/:id/suspend`, async (by, { params: { id } }) => {
  const team = await suspendTeam(by, id)
  return redirect(pageOfTeam(id), `${team.name} is suspended.`)
}).confirm(async ({ params }, { database }) => {
  const { name, suspended_at } = await showTeam(database, params.id)
  if (suspended_at !== null) throw already(name, 'suspended')
  return {
    question: `Suspend ${name}?`,
    answer: 'Suspend team',
    warning: 'Its keys and tokens are rejected from then on, and queued messages wait.',
    tone: 'danger',
  }
})

const resume = action('operator', `${TEAMS_PATH}/:id/resume`, async (by, { params: { id } }) => {
  const team = await resumeTeam(by, id)
  return redirect(pageOfTeam(id), `${team.name} is resumed. Queued messages are sent.`)
})

export const teamPages = [page, changePlan, changeNumber, suspend, resume, resumeBulkEmail]
