/** Creates a team with its subscription, quota and audit entry, in the caller's transaction. */

import { invalidField, RequestError } from '../../errors.ts'
import type { Tx } from '../../postgres/pool.ts'
import { serviceTime } from '../../postgres/time.sql.ts'
import { SettingsFault } from '../../process/config.ts'
import { idNow } from '../../process/ids.ts'
import { checkName } from '../../validation/name.ts'
import { type Caller, record } from '../audit/record.ts'
import { allPlans, type PlanRow } from '../plans/plans.sql.ts'
import { TEXTS } from '../texts.ts'
import { firstAllowance } from './limits.ts'
import { insertTeam } from './teams.sql.ts'
import { asTest } from './view.ts'

type NewTeam = { id: string; name: string; plan: string; test?: true }

/** Returns the plan with this key. @throws RequestError bad_request naming the plans that teams can use. */
export async function planForTeams(tx: Tx, key: string): Promise<PlanRow> {
  const plans = (await allPlans(tx)).filter((plan) => plan.product === 'transactional')
  const plan = plans.find((candidate) => candidate.key === key)
  if (plan) return plan
  const known = plans.map((candidate) => candidate.key).join(', ')
  throw invalidField('plan', TEXTS.noPlan, { plans: known || 'none', key })
}

/** The plan of new teams if DEFAULT_PLAN isn't set. */
export const USUAL_PLAN = 'free'

/** Returns the error of the setting DEFAULT_PLAN, or null. */
export async function defaultPlanFault(tx: Tx, key: string | undefined): Promise<string | null> {
  if (key === undefined) return null
  const plan = await planForTeams(tx, key).catch((error: unknown) => {
    if (error instanceof RequestError) return error
    throw error
  })
  if (!(plan instanceof RequestError)) return null
  return `DEFAULT_PLAN: ${plan.fields.map(({ problem }) => problem).join(', ')}`
}

/** @throws SettingsFault if the setting DEFAULT_PLAN names no plan of the catalog. */
export async function checkDefaultPlan(tx: Tx, key: string | undefined): Promise<void> {
  const fault = await defaultPlanFault(tx, key)
  if (fault !== null) throw new SettingsFault([fault])
}

/** @throws RequestError bad_request for an invalid name or an unknown plan. */
export async function createTeam(
  by: Caller,
  {
    name,
    plan: key = USUAL_PLAN,
    test = false,
  }: { name: string; plan?: string | undefined; test?: boolean | undefined },
): Promise<NewTeam> {
  checkName(name)
  const { tx } = by
  const plan = await planForTeams(tx, key)
  const now = await serviceTime(tx)
  const team = { id: idNow(), name, plan: plan.key, ...asTest({ test }) }
  await insertTeam(tx, { ...team, test }, firstAllowance(plan, now), now)
  await record(by, {
    team_id: team.id,
    action: 'team.create',
    subject: name,
    detail: test ? `${plan.key}, test` : plan.key,
  })
  return team
}
