/**
 * The plan catalog as a file: validated completely, and loaded in one transaction. `plan list` prints what `plan
 * load` reads (DECISIONS: Plan catalog).
 */

import {
  type AnyObject,
  array,
  boolean,
  mixed,
  number,
  type ObjectSchema,
  object,
  string,
  ValidationError,
} from 'yup'
import { REQUIRED, RequestError, requestError } from '../../errors.ts'
import type { Database, Tx } from '../../postgres/pool.ts'
import { serviceTime } from '../../postgres/time.sql.ts'
import { isObject } from '../../validation/fields.ts'
import { assertSeen, markOf } from '../../validation/mark.ts'
import { textFault } from '../../validation/strings.ts'
import { type Caller, record } from '../audit/record.ts'
import { TEXTS } from '../texts.ts'
import defaultCatalog from './default-catalog.json' with { type: 'json' }
import { LARGEST_FIGURE, LARGEST_RATE } from './limits.ts'
import { allPlans, lockPlans, type PlanRow, plansInUse, replacePlans } from './plans.sql.ts'
import { byLimit } from './quotas.ts'

// Messages name the field and never quote its value, which may be the entire file.

const wholeNumber = (from: number, to: number) => {
  const message = `must be a whole number from ${from} to ${to}`
  const holds = (value: number | undefined) =>
    value === undefined || (Number.isInteger(value) && value >= from && value <= to)
  return number().typeError(message).test('whole number', message, holds)
}
const figure = () => wholeNumber(0, LARGEST_FIGURE)
const words = () => {
  const message = 'must have text in en and fr'
  const text = string().typeError('must be a string').required(REQUIRED)
  return object({ en: text, fr: text }).typeError(message).required(message)
}
const lines = () => {
  const line = string().typeError('must be a string').defined()
  return array(line).typeError('must be an array of strings').required(REQUIRED)
}
const tierSchema = <T extends AnyObject>(tier: ObjectSchema<T>) => {
  const strict = tier.typeError('must be an object').noUnknown('has an unknown field: ${unknown}')
  return array(strict.required(REQUIRED)).typeError('must be an array')
}

const planSchema = object({
  key: string()
    .typeError('must be a string')
    .matches(/^[a-z0-9][a-z0-9_-]{0,62}$/, 'must be lower-case letters, digits, - and _')
    .required(REQUIRED),
  product: mixed<PlanRow['product']>()
    .oneOf(['transactional', 'marketing'], 'must be transactional or marketing')
    .optional(),
  kind: mixed<PlanRow['kind']>()
    .oneOf(['free', 'paid', 'custom'], 'must be free, paid or custom')
    .required(REQUIRED),
  name: words(),
  blurb: words(),
  cta: words(),
  benefits: object({ en: lines(), fr: lines() })
    .typeError('must have arrays in en and fr')
    .required(REQUIRED),
  featured: boolean().typeError('must be true or false').optional(),
  ...byLimit(() => figure().optional()),
  domains_limit: figure().optional(),
  storage_gb: figure().optional(),
  send_rate_per_second: wholeNumber(1, LARGEST_RATE).optional(),
  overage_per_1000_cents: figure().optional(),
  tiers: tierSchema(
    object({
      emails: figure().required(REQUIRED),
      monthly_cents: figure().required(REQUIRED),
      annual_cents: figure().optional(),
    }),
  ).optional(),
  contacts_tiers: tierSchema(
    object({ contacts: figure().required(REQUIRED), monthly_cents: figure().required(REQUIRED) }),
  ).optional(),
})
  .typeError('must be an object')
  .noUnknown('has an unknown field: ${unknown}')

const catalogSchema = object({
  plans: array(planSchema.required(REQUIRED)).typeError('must be an array').required(REQUIRED),
}).noUnknown('has an unknown field: ${unknown}')

/** @throws RequestError bad_request naming every error. */
export function parseCatalog(content: unknown): PlanRow[] {
  if (!isObject(content))
    throw new RequestError('bad_request', { field: 'The catalog', problem: 'must be an object with plans' })
  const fault = textFault(content)
  if (fault) throw new RequestError('bad_request', { ...fault, field: fault.field || 'The catalog' })
  try {
    // Strict, because nothing should be coerced, and yup fails on a field named __proto__ when it casts.
    const { plans } = catalogSchema.validateSync(content, { abortEarly: false, strict: true })
    const keys = plans.map((plan) => plan.key)
    const repeated = keys.find((key, index) => keys.indexOf(key) !== index)
    if (repeated !== undefined) throw requestError('bad_request', TEXTS.planTwice, { key: repeated })
    return plans.map((plan) => ({
      ...plan,
      product: plan.product ?? 'transactional',
      featured: plan.featured ?? false,
      ...byLimit(({ limit }) => plan[limit] ?? null),
      domains_limit: plan.domains_limit ?? null,
      storage_gb: plan.storage_gb ?? null,
      send_rate_per_second: plan.send_rate_per_second ?? null,
      overage_per_1000_cents: plan.overage_per_1000_cents ?? null,
      tiers: plan.tiers ?? null,
      contacts_tiers: plan.contacts_tiers ?? null,
    }))
  } catch (error) {
    if (error instanceof ValidationError) {
      const faults = error.inner.map(({ path, message }) => ({
        field: path || 'The catalog',
        problem: message,
      }))
      throw new RequestError('bad_request', faults)
    }
    throw error
  }
}

/**
 * Replaces the catalog in the caller's transaction, with an audit entry.
 * @param seen the mark of the catalog on the page, if any.
 * @throws RequestError bad_request if it is invalid, or lacks a plan that teams use. invalid_state if the catalog has
 * changed since.
 */
export async function loadCatalog(by: Caller, content: unknown, seen: string | null = null): Promise<void> {
  const { tx } = by
  const plans = parseCatalog(content)
  await lockPlans(tx)
  assertSeen(seen, markOf(await printCatalog(tx)), TEXTS.catalogReplaced)
  const keys = new Set(plans.map((plan) => plan.key))
  for (const [key, teams] of await plansInUse(tx)) {
    if (!keys.has(key)) throw requestError('bad_request', TEXTS.planInUse, { key, teams })
  }
  await replacePlans(tx, plans)
  await record(by, { team_id: null, action: 'plan.load', subject: 'catalog', detail: [...keys].join(', ') })
}

/** Returns the catalog in the format of `plan load`. Unset values are left out. */
export async function printCatalog(tx: Tx): Promise<{ plans: Record<string, unknown>[] }> {
  const plans = await allPlans(tx)
  return {
    plans: plans.map((plan) =>
      Object.fromEntries(Object.entries(plan).filter(([, value]) => value !== null)),
    ),
  }
}

/** Loads the default catalog into a database that has none. @returns whether it did. */
export async function loadDefaultCatalog(database: Database): Promise<boolean> {
  return database.transaction(async (tx) => {
    if ((await allPlans(tx)).length > 0) return false
    await loadCatalog({ tx, now: await serviceTime(tx), actor: null }, defaultCatalog)
    return true
  })
}
