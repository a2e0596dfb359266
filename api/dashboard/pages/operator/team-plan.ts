/** The form with the plan and the own limits of a team, and the paths of the operator's pages about teams. */

import { allPlans, type PlanRow, planName } from '../../../../db/accounts/plans/plans.sql.ts'
import { byLimit, isPeriodic, QUOTAS } from '../../../../db/accounts/plans/quotas.ts'
import { subscribeTeam } from '../../../../db/accounts/teams/subscribe.ts'
import type { TeamView } from '../../../../db/accounts/teams/view.ts'
import { invalidField } from '../../../../db/errors.ts'
import type { Tx } from '../../../../db/postgres/pool.ts'
import { isObject } from '../../../../db/validation/fields.ts'
import { parseJson } from '../../../../db/validation/strings.ts'
import { headed } from '../../components/cell.ts'
import type { Field, Section } from '../../components/section.ts'
import { action, buildForm, field, hidden } from '../../server/builders.ts'
import { redirect } from '../../server/page.ts'

export const TEAMS_PATH = '/operator/teams'
export const pageOfTeam = (id: string): string => `${TEAMS_PATH}/${id}`

const GB = 1e9

/** False for plans without limits. */
export const isForTeams = ({ product }: PlanRow): boolean => product === 'transactional'

export const planField = async (tx: Tx, chosen?: string): Promise<Field> => {
  const plans = (await allPlans(tx)).filter(isForTeams)
  const options = plans.map(({ key, name }) => ({
    value: key,
    label: key === name.en.toLowerCase() ? name.en : `${name.en} (${key})`,
    selected: key === chosen,
  }))
  return field('plan', 'Plan', { type: 'select', options, required: true })
}

const FIGURES = [
  ...QUOTAS.map((quota) => {
    const label = headed(quota.noun)
    return { name: quota.limit, label: isPeriodic(quota) ? `${label} per period` : label }
  }),
  { name: 'send_rate_per_second', label: 'Emails per second' } as const,
  { name: 'storage_gb', label: 'Attachments in GB' } as const,
]

/** Builds the form with the plan and the team's own limits. An empty field means the plan's limit. */
export async function planForm(team: TeamView, tx: Tx): Promise<Section> {
  const { overrides, limits } = team
  const own = {
    ...byLimit(({ name }) => [overrides[name], limits[name]] as const),
    send_rate_per_second: [overrides.rate, limits.rate],
    storage_gb: [overrides.storage, limits.storage === null ? null : limits.storage / GB],
  } as const
  const figures = FIGURES.map(({ name, label }) => {
    const [value, limit] = own[name]
    const placeholder = limit?.toLocaleString('en-US')
    return field(name, label, { value: value?.toLocaleString('en-US') ?? '', placeholder, beside: true })
  })
  const shown = Object.fromEntries(figures.map(({ name, value }) => [name, value]))
  return buildForm(`${pageOfTeam(team.id)}/plan`, 'Save plan and limits', {
    title: 'Plan and limits',
    tone: 'quiet',
    note: 'Leave a limit empty to use the plan’s.',
    fields: [
      hidden('shown', JSON.stringify({ plan: team.plan, ...shown })),
      { ...(await planField(tx, team.plan)), beside: true },
      ...figures,
    ],
  })
}

/** A number with commas or spaces as thousands separators. */
const GROUPED = /^\d{1,3}([,\s]\d{3})+(\.\d+)?$/

/** Reads a limit: null for the plan's, undefined if it is missing. @throws RequestError bad_request. */
function readLimit(form: URLSearchParams, name: string): number | null | undefined {
  const typed = form.get(name)?.trim()
  if (typed === undefined) return undefined
  if (typed === '' || typed === 'plan') return null
  const value = GROUPED.test(typed) ? typed.replace(/[,\s]/g, '') : typed
  if (/^\d+(\.\d+)?$/.test(value)) return Number(value)
  throw invalidField(name, 'must be a number, or empty for the plan’s limit')
}

/** Returns a test for unchanged fields, which others may have changed since. With another plan, all are changed. */
function leftIn(form: URLSearchParams): (name: string) => boolean {
  const shown = parseJson(form.get('shown') ?? '')
  if (!isObject(shown) || shown.plan !== form.get('plan')) return () => false
  return (name) => Object.hasOwn(shown, name) && shown[name] === form.get(name)
}

export const changePlan = action(
  'operator',
  `${TEAMS_PATH}/:id/plan`,
  async (by, { params: { id }, form }) => {
    const isLeft = leftIn(form)
    const figures = FIGURES.flatMap(({ name }) => {
      const value = isLeft(name) ? undefined : readLimit(form, name)
      return value === undefined ? [] : [[name, value] as const]
    })
    const plan = isLeft('plan') ? {} : { plan: form.get('plan') ?? '' }
    const change = { ...plan, ...Object.fromEntries(figures) }
    const team = await subscribeTeam(by, id, change)
    return redirect(pageOfTeam(id), `${team.name} is on the plan ${await planName(by.tx, team.plan)}.`)
  },
)
