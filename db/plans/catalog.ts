/**
 * The plan catalog as a file: validated whole, loaded in one transaction, printed as it was loaded.
 * Promises: `plan list` prints what `plan load` takes (decisions: plan list); a catalog with a fault changes nothing.
 */
import { array, boolean, number, object, string, ValidationError } from 'yup'
import { Refusal } from '../errors.ts'
import type { Database, Tx } from '../pool.ts'
import defaultCatalog from './default-catalog.json' with { type: 'json' }
import { allPlans, type PlanRow, plansInUse, replacePlans } from './table.ts'

const count = () => number().strict().integer().min(0).optional()
const required = () => number().strict().integer().min(0).required()
const words = () => object({ en: string().strict().required(), fr: string().strict().required() }).required()
const lines = () => array(string().strict().defined()).strict().required()

const planSchema = object({
  key: string()
    .strict()
    .matches(/^[a-z0-9][a-z0-9_-]{0,62}$/, '${path} must be lower-case letters, digits, - and _')
    .required(),
  product: string().strict().oneOf(['transactional', 'marketing']).optional(),
  kind: string().strict().oneOf(['free', 'paid', 'custom']).required(),
  name: words(),
  blurb: words(),
  cta: words(),
  benefits: object({ en: lines(), fr: lines() }).required(),
  featured: boolean().strict().optional(),
  email_limit: count(),
  contact_limit: count(),
  whatsapp_limit: count(),
  domains_limit: count(),
  storage_gb: count(),
  send_rate_per_second: number().strict().integer().min(1).optional(),
  overage_per_1000_cents: count(),
  tiers: array(
    object({ emails: required(), monthly_cents: required(), annual_cents: count() }).noUnknown(),
  ).optional(),
  contacts_tiers: array(object({ contacts: required(), monthly_cents: required() }).noUnknown()).optional(),
}).noUnknown('${path} has a field that plans do not know: ${unknown}')

const catalogSchema = object({ plans: array(planSchema.required()).strict().required() }).noUnknown(
  'the catalog has a field that it does not know: ${unknown}',
)

/** Checks a catalog file's content. @throws Refusal bad_request naming every fault. */
function parseCatalog(content: unknown): PlanRow[] {
  try {
    const { plans } = catalogSchema.validateSync(content, { abortEarly: false, stripUnknown: false })
    const keys = plans.map((plan) => plan.key)
    const repeated = keys.find((key, index) => keys.indexOf(key) !== index)
    if (repeated !== undefined)
      throw new Refusal('bad_request', `the catalog has two plans with the key ${repeated}`)
    return plans.map((plan) => ({
      ...plan,
      product: plan.product ?? 'transactional',
      featured: plan.featured ?? false,
      email_limit: plan.email_limit ?? null,
      contact_limit: plan.contact_limit ?? null,
      whatsapp_limit: plan.whatsapp_limit ?? null,
      domains_limit: plan.domains_limit ?? null,
      storage_gb: plan.storage_gb ?? null,
      send_rate_per_second: plan.send_rate_per_second ?? null,
      overage_per_1000_cents: plan.overage_per_1000_cents ?? null,
      tiers: (plan.tiers as PlanRow['tiers']) ?? null,
      contacts_tiers: (plan.contacts_tiers as PlanRow['contacts_tiers']) ?? null,
    }))
  } catch (error) {
    if (error instanceof ValidationError) throw new Refusal('bad_request', error.errors.join('; '))
    throw error
  }
}

/**
 * Replaces the catalog in the caller's transaction.
 * @throws Refusal bad_request when it is malformed, or lacks a plan that teams are subscribed to.
 */
export async function loadCatalog(tx: Tx, content: unknown): Promise<void> {
  const plans = parseCatalog(content)
  const keys = new Set(plans.map((plan) => plan.key))
  for (const [key, teams] of await plansInUse(tx)) {
    if (!keys.has(key))
      throw new Refusal('bad_request', `the catalog lacks the plan ${key}, which ${teams} teams have`)
  }
  await replacePlans(tx, plans)
}

/** The catalog as `plan load` takes it: figures that are not set are left out. */
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
  return await database.transaction(async (tx) => {
    if ((await allPlans(tx)).length > 0) return false
    await loadCatalog(tx, defaultCatalog)
    return true
  })
}
