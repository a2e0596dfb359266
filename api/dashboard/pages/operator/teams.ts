/** Lists all teams with their usage. Creates teams, changes their plans, and suspends or resumes them. */

import { membersOfTeam } from '../../../../db/accounts/members/people.sql.ts'
import { allPlans } from '../../../../db/accounts/plans/plans.sql.ts'
import { byLimit, isPeriodic, QUOTAS, USED } from '../../../../db/accounts/plans/quotas.ts'
import { createTeam } from '../../../../db/accounts/teams/create.ts'
import { readAccountRows, teamsOfIds } from '../../../../db/accounts/teams/directory.sql.ts'
import { toAccount } from '../../../../db/accounts/teams/limits.ts'
import { readBulkPause } from '../../../../db/accounts/teams/reputation.sql.ts'
import { subscribeTeam } from '../../../../db/accounts/teams/subscribe.ts'
import { resumeTeam, suspendTeam } from '../../../../db/accounts/teams/suspend.ts'
import { showTeam, type TeamView } from '../../../../db/accounts/teams/view.ts'
import { invalidField } from '../../../../db/errors.ts'
import { resumeBulk } from '../../../../db/messages/bulk-pause.ts'
import { allNumbers, numberOfTeam } from '../../../../db/messages/whatsapp/numbers.sql.ts'
import { changeTeamNumber } from '../../../../db/messages/whatsapp/team-number.ts'
import type { Tx } from '../../../../db/postgres/pool.ts'
import { sendingOfWeek, TEAM_SORTS, teamsByShare } from '../../../../db/stats/daily/sending.sql.ts'
import { isObject } from '../../../../db/validation/fields.ts'
import { parseJson } from '../../../../db/validation/strings.ts'
import {
  byteWords,
  type Cell,
  dayWords,
  formatAge,
  headed,
  lastActive,
  number,
  plural,
  status,
  text,
} from '../../components/cell.ts'
import type { Field, Form, Section } from '../../components/section.ts'
import { usageTile } from '../../components/usage.ts'
import { already } from '../../server/already.ts'
import {
  action,
  buildAlerts,
  buildFacts,
  buildForm,
  buildTable,
  button,
  compact,
  field,
  get,
  hidden,
} from '../../server/builders.ts'
import type { PageDeps } from '../../server/deps.ts'
import { defineFilter, search, sorts } from '../../server/filter.ts'
import { pageBy } from '../../server/list.ts'
import { redirect, show, teamPath } from '../../server/page.ts'
import { bulkPausedAlert, RESUME_BULK } from '../stopped.ts'
import { weekCells } from './team-shares.ts'

const PATH = '/operator/teams'
const pageOfTeam = (id: string): string => `${PATH}/${id}`
const planPath = (id: string): string => `${PATH}/${id}/plan`

/** Builds the cell with the usage and its limit. */
const usage = (used: number, limit: number | null): Cell =>
  number(used, { detail: limit === null ? 'no limit' : `of ${number(limit).text}` })

const TEST_FIELD: Field = field('test', 'Kind', {
  type: 'checks',
  options: [{ value: 'yes', label: 'Test team (nothing is delivered, can’t be changed later)' }],
})

const planField = async (tx: Tx, chosen?: string): Promise<Field> => {
  const plans = (await allPlans(tx)).filter(({ product }) => product === 'transactional')
  const options = plans.map(({ key, name }) => ({
    value: key,
    label: `${name.en} (${key})`,
    selected: key === chosen,
  }))
  return field('plan', 'Plan', { type: 'select', options, required: true })
}

const filter = defineFilter({ name: search('Name'), sort: sorts(TEAM_SORTS) })

type TeamItem = Awaited<ReturnType<typeof teamsOfIds>>[number]

/** Builds the cell with a team's name and plan, in a color if it is suspended or paused. */
function nameCell({ id, name, plan, test, suspended_at, bulk_paused_at }: TeamItem): Cell {
  const more = { href: pageOfTeam(id), detail: compact<string>([plan, test && 'test team']).join(', ') }
  if (suspended_at !== null) return status(`${name}, suspended`, { ...more, tone: 'bad' })
  if (bulk_paused_at === null) return text(name, more)
  const detail = `broadcasts and batches are paused, ${more.detail}`
  return status(`${name}, paused`, { ...more, detail, tone: 'warn' })
}

const teams = get('operator', PATH, async (request, { database, defaultPlan }) => {
  const { query } = request
  const asked = filter.read(query)
  const { name, sort = 'worst' } = asked
  const page = await pageBy(
    request,
    async ({ before: after, limit }) =>
      teamsOfIds(database, await teamsByShare(database, { name, sort, after, limit })),
    { keyOf: ({ id }) => id, way: 'on' },
  )
  const ids = page.rows.map(({ id }) => id)
  const accounts = await readAccountRows(database, ids)
  const weeks = await sendingOfWeek(database, ids)
  return show({
    title: 'Teams',
    sections: [
      ...filter.shown(request),
      buildTable(
        page.rows,
        (team) => {
          const row = accounts.get(team.id)
          const account = row && toAccount(row)
          const used = USED.map(({ name, title }) => [
            title,
            usage(account?.used[name] ?? 0, account?.limits[name] ?? null),
          ])
          return { Team: nameCell(team), ...weekCells(weeks.get(team.id)), ...Object.fromEntries(used) }
        },
        {
          note: 'Bounces, complaints and suppressions are of the last 7 days.',
          empty: 'No team matches.',
          next: page.next,
        },
      ),
      buildForm(
        PATH,
        'Create team',
        [field('name', 'Name', { required: true }), await planField(database, defaultPlan), TEST_FIELD],
        { title: 'New team', folded: true },
      ),
    ],
  })
})

const create = action('operator', PATH, async (by, { form }) => {
  const test = form.get('test') === 'yes'
  const wanted = { name: form.get('name') ?? '', plan: form.get('plan') ?? by.defaultPlan, test }
  const team = await createTeam(by, wanted)
  return redirect(teamPath(team), `The team ${team.name} was created. Add a domain and a key next.`)
})

const FIGURES = [
  ...QUOTAS.map((quota) => {
    const label = headed(quota.noun)
    return { name: quota.limit, label: isPeriodic(quota) ? `${label} per period` : label }
  }),
  { name: 'send_rate_per_second', label: 'Emails per second' } as const,
]

const suspension = (id: string, suspendedAt: string | null): Form =>
  suspendedAt === null
    ? button(`${PATH}/${id}/suspend`, 'Suspend team', { tone: 'danger' })
    : button(`${PATH}/${id}/resume`, 'Resume team')

/** Builds the form with the plan and the team's own limits. An empty field means the plan's limit. */
async function planForm(team: TeamView, tx: Tx): Promise<Section> {
  const { overrides, limits } = team
  const own = {
    ...byLimit(({ name }) => [overrides[name], limits[name]] as const),
    send_rate_per_second: [overrides.rate, limits.rate],
  } as const
  const figures = FIGURES.map(({ name, label }) => {
    const [value, limit] = own[name]
    const placeholder = limit?.toLocaleString('en-US')
    return field(name, label, { value: value === null ? '' : String(value), placeholder, beside: true })
  })
  const shown = Object.fromEntries(figures.map(({ name, value }) => [name, value]))
  return buildForm(
    planPath(team.id),
    'Save plan and limits',
    [
      { ...(await planField(tx, team.plan)), beside: true },
      ...figures,
      hidden('shown', JSON.stringify({ plan: team.plan, ...shown })),
    ],
    { title: 'Plan and limits', note: 'Leave a limit empty to use the plan’s.' },
  )
}

/** Builds the choice of the team's WhatsApp number, if there are others than the default. */
async function numberForm(teamId: string, tx: Tx): Promise<Section | false> {
  const numbers = await allNumbers(tx)
  if (numbers.length === 0) return false
  const own = (await numberOfTeam(tx, teamId))?.number
  const options = ['default', ...numbers.map(({ name }) => name)].map((name) => ({
    ...{ value: name, label: name === 'default' ? 'the default number' : name },
    selected: name === own,
  }))
  return buildForm(
    `${PATH}/${teamId}/number`,
    'Save number',
    [field('number', 'Number', { type: 'select', options, required: true })],
    {
      title: 'WhatsApp number',
      note: 'Waiting messages keep their number. If the account changes, templates are pending until they are found in the new one.',
    },
  )
}

const changeNumber = action('operator', `${PATH}/:id/number`, async (by, { params: { id }, form }) => {
  const { number: name, waiting } = await changeTeamNumber(by, id, form.get('number') ?? '')
  const words =
    waiting === 0 ? '' : ` ${plural(waiting, 'waiting message')} will still be sent from the earlier number.`
  return redirect(pageOfTeam(id), `The team sends from the number ${name}.${words}`)
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
      empty: 'No members yet. Invite an owner on the team’s People page.',
      start: { href: teamPath({ id }, 'people'), label: 'Invite members' },
    },
  )

const page = get('operator', `${PATH}/:id`, async ({ params, now }, deps) => {
  const { database } = deps
  const team = await showTeam(database, params.id)
  const { limits, period, used, suspended_at, bulk_paused } = team
  const bulk = bulk_paused && (await readBulkPause(database, team.id))
  return show({
    title: team.name,
    state: suspended_at === null ? status('active') : status('suspended', { tone: 'bad' }),
    back: { href: PATH, label: 'Teams' },
    actions: {
      links: [{ href: teamPath(team), label: 'Open its dashboard' }],
      forms: compact([
        bulk_paused !== null && button(`${PATH}/${team.id}/resume-bulk`, RESUME_BULK),
        suspension(team.id, suspended_at),
      ]),
    },
    lead:
      suspended_at === null
        ? `${team.test ? 'Test team: nothing is delivered. ' : ''}Plan ${team.plan}, from ${dayWords(period.start)} to ${dayWords(period.end)}.`
        : `Suspended ${formatAge(suspended_at, now)}: its credentials are rejected, and queued messages wait.`,
    sections: [
      ...buildAlerts([bulk && bulkPausedAlert(bulk, now)]),
      ...compact([
        await membersTable(team.id, deps, now),
        await planForm(team, database),
        await numberForm(team.id, database),
      ]),
    ],
    aside: [
      {
        kind: 'tiles',
        title: 'Usage',
        tiles: [
          ...QUOTAS.map(({ name, noun }) => usageTile(headed(noun), used[name], limits[name])),
          usageTile('Attachments', used.storage, limits.storage, { words: byteWords }),
        ],
      },
      buildFacts({ 'Emails per second': number(limits.rate), ID: text(team.id, { code: true, copy: true }) }),
    ],
  })
})

/** A number with commas or spaces as thousands separators. */
const GROUPED = /^\d{1,3}([,\s]\d{3})+(\.\d+)?$/

/**
 * Reads a limit: a number, null for the plan's limit, or undefined if it is missing.
 * @throws RequestError bad_request.
 */
function readLimit(form: URLSearchParams, name: string): number | null | undefined {
  const typed = form.get(name)?.trim()
  if (typed === undefined) return undefined
  if (typed === '' || typed === 'plan') return null
  const value = GROUPED.test(typed) ? typed.replace(/[,\s]/g, '') : typed
  if (/^\d+(\.\d+)?$/.test(value)) return Number(value)
  throw invalidField(name, 'must be a number, or empty for the plan’s limit')
}

/**
 * Returns a test for fields that the form doesn't change, because another operator can have changed them
 * since. With another plan, all fields count as changed.
 */
function leftIn(form: URLSearchParams): (name: string) => boolean {
  const shown = parseJson(form.get('shown') ?? '')
  if (!isObject(shown) || shown.plan !== form.get('plan')) return () => false
  return (name) => Object.hasOwn(shown, name) && shown[name] === form.get(name)
}

const changePlan = action('operator', `${PATH}/:id/plan`, async (by, { params: { id }, form }) => {
  const isLeft = leftIn(form)
  const figures = FIGURES.flatMap(({ name }) => {
    const value = isLeft(name) ? undefined : readLimit(form, name)
    return value === undefined ? [] : [[name, value] as const]
  })
  const plan = isLeft('plan') ? {} : { plan: form.get('plan') ?? '' }
  const change = { ...plan, ...Object.fromEntries(figures) }
  const team = await subscribeTeam(by, id, change)
  return redirect(pageOfTeam(id), `${team.name} is on the plan ${team.plan}.`)
})

const resumeBulkEmail = action('operator', `${PATH}/:id/resume-bulk`, async (by, { params: { id } }) => {
  const team = await resumeBulk(by, id)
  return redirect(pageOfTeam(id), `Broadcasts and batches of ${team.name} are resumed.`)
})

const suspend = action(
  'operator',
  `${PATH}/:id/suspend`,
  async (by, { params: { id } }) => {
    const team = await suspendTeam(by, id)
    return redirect(pageOfTeam(id), `${team.name} is suspended.`)
  },
  async ({ params }, { database }) => {
    const { name, suspended_at } = await showTeam(database, params.id)
    if (suspended_at !== null) throw already(name, 'suspended')
    return {
      question: `Suspend ${name}?`,
      answer: 'Suspend team',
      warning: 'Its keys and sessions are rejected from then on, and queued messages wait.',
      tone: 'danger',
    }
  },
)

const resume = action('operator', `${PATH}/:id/resume`, async (by, { params: { id } }) => {
  const team = await resumeTeam(by, id)
  return redirect(pageOfTeam(id), `${team.name} is resumed. Queued messages are sent.`)
})

export const teamPages = [teams, create, page, changePlan, changeNumber, suspend, resume, resumeBulkEmail]
