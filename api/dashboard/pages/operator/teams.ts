/** Lists all teams with their usage, and creates teams. */

import { allPlans } from '../../../../db/accounts/plans/plans.sql.ts'
import { isPeriodic, USED } from '../../../../db/accounts/plans/quotas.ts'
import { createTeam } from '../../../../db/accounts/teams/create.ts'
import { readAccountRows, teamsOfIds } from '../../../../db/accounts/teams/directory.sql.ts'
import { toAccount } from '../../../../db/accounts/teams/limits.ts'
import { sendingOfWeek, TEAM_SORTS, teamsByShare } from '../../../../db/stats/daily/sending.sql.ts'
import { type Cell, number, status, type Tone, text } from '../../components/cell.ts'
import { percent } from '../../components/percent.ts'
import type { Field } from '../../components/section.ts'
import { ALARMING_SHARE } from '../../components/shares.ts'
import { action, buildForm, buildTable, compact, field, get } from '../../server/builders.ts'
import { defineFilter, search, sorts } from '../../server/filter.ts'
import { pageBy } from '../../server/list.ts'
import { redirect, show, teamPath } from '../../server/page.ts'
import { isForTeams, pageOfTeam, planField, TEAMS_PATH } from './team-plan.ts'
import { rateCells } from './team-shares.ts'

/** Usage above this share of a limit is marked. */
const NEAR_LIMIT = 0.8

/** Returns the color of a usage near its limit. @param share Infinity for a limit of 0. */
const usageTone = (share: number): Tone | undefined =>
  share >= 1 ? 'bad' : share >= NEAR_LIMIT ? 'warn' : undefined

const usage = (used: number, limit: number | null): Cell =>
  number(used, {
    detail: limit === null ? 'no limit' : `of ${number(limit).text}`,
    tone: limit === null || used === 0 ? undefined : usageTone(used / limit),
  })

/** Moves the count of a rate into the tooltip. The page of the team has it. */
const withoutCount = ({ detail, ...rate }: Cell): Cell => ({ ...rate, tip: detail })

const PERIODIC = new Intl.ListFormat('en').format(USED.filter(isPeriodic).map(({ noun }) => noun))

const TEST_FIELD: Field = field('test', 'Kind', {
  type: 'checks',
  options: [{ value: 'yes', label: 'Test team (nothing is delivered, can’t be changed later)' }],
})

const filter = defineFilter({
  name: search('Name'),
  plan: search('Plan', { type: 'select' }),
  sort: sorts(TEAM_SORTS),
})

/** The names of plans, by their keys. */
type Names = ReadonlyMap<string, string>

type TeamItem = Awaited<ReturnType<typeof teamsOfIds>>[number]

/** Builds the cell with a team's name and plan, in a color if it is suspended or paused. */
function nameCell({ id, name, plan, test, suspended_at, bulk_paused_at }: TeamItem, names: Names): Cell {
  const detail = compact<string>([names.get(plan) ?? plan, test && 'test team']).join(', ')
  const more = { href: pageOfTeam(id), detail }
  if (suspended_at !== null) return status(`${name}, suspended`, { ...more, tone: 'bad' })
  if (bulk_paused_at === null) return text(name, more)
  return status(`${name}, paused`, {
    ...more,
    detail: `broadcasts and batches are paused, ${detail}`,
    tone: 'warn',
  })
}

const teams = get('operator', TEAMS_PATH, async (request, { database, defaultPlan }) => {
  const { query } = request
  const asked = filter.read(query)
  const { name, plan, sort = 'worst' } = asked
  const page = await pageBy(
    request,
    async ({ before: after, limit }) =>
      teamsOfIds(database, await teamsByShare(database, { name, plan, sort, after, limit })),
    { keyOf: ({ id }) => id, way: 'on' },
  )
  const ids = page.rows.map(({ id }) => id)
  const accounts = await readAccountRows(database, ids)
  const weeks = await sendingOfWeek(database, ids)
  const plans = (await allPlans(database)).filter(isForTeams)
  const names: Names = new Map(plans.map(({ key, name }) => [key, name.en]))
  return show({
    title: 'Teams',
    sections: [
      ...filter.shown(request, { choices: { plan: names } }),
      buildTable(
        page.rows,
        (team) => {
          const row = accounts.get(team.id)
          const account = row && toAccount(row)
          const used = USED.map(({ name, title }) => [
            title,
            usage(account?.used[name] ?? 0, account?.limits[name] ?? null),
          ])
          const rates = rateCells(weeks.get(team.id))
          return {
            Team: nameCell(team, names),
            Bounces: withoutCount(rates['Hard bounces']),
            Complaints: withoutCount(rates.Complaints),
            ...Object.fromEntries(used),
          }
        },
        {
          id: 'grid',
          note: `Hard bounces and complaints cover the last 7 days. Limits of mailbox providers: ${percent(ALARMING_SHARE.bounced)} and ${percent(ALARMING_SHARE.complained)}. Usage of ${PERIODIC} covers the team’s current period. “Worst” lists the highest rates first.`,
          empty: 'No team matches.',
          next: page.next,
        },
      ),
      buildForm(TEAMS_PATH, 'Create team', {
        title: 'New team',
        folded: true,
        fields: [
          field('name', 'Name', { required: true }),
          await planField(database, defaultPlan),
          TEST_FIELD,
        ],
      }),
    ],
  })
})

const create = action('operator', TEAMS_PATH, async (by, { form }) => {
  const test = form.get('test') === 'yes'
  const wanted = { name: form.get('name') ?? '', plan: form.get('plan') ?? by.defaultPlan, test }
  const team = await createTeam(by, wanted)
  return redirect(teamPath(team), `The team ${team.name} was created. Add a domain and a key next.`)
})

export const teamsPages = [teams, create]
