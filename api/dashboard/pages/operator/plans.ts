/** Shows the plan catalog and replaces it from JSON. */

import { loadCatalog, printCatalog } from '../../../../db/accounts/plans/catalog.ts'
import { planFigures } from '../../../../db/accounts/plans/defaults.ts'
import { allPlans, type PlanRow } from '../../../../db/accounts/plans/plans.sql.ts'
import { QUOTAS, type QuotaName } from '../../../../db/accounts/plans/quotas.ts'
import { markOf } from '../../../../db/validation/mark.ts'
import { type Cell, number, plural, text } from '../../components/cell.ts'
import { jsonTyped } from '../../components/typed.ts'
import { assertUnreplaced } from '../../server/already.ts'
import { action, buildForm, buildTable, field, get, hidden } from '../../server/builders.ts'
import { redirect, show } from '../../server/page.ts'

const PATH = '/operator/plans'

/**
 * Returns the limits that teams on a paid plan without its own have: its first tier of emails, and a first tier of
 * contacts, its own or that of the first plan with any.
 */
function firstTiers({ kind, tiers, contacts_tiers }: PlanRow, catalog: readonly PlanRow[]) {
  if (kind !== 'paid') return {}
  const byKey = catalog.toSorted((one, other) => (one.key < other.key ? -1 : 1))
  const [contacts] = [contacts_tiers, ...byKey.map((plan) => plan.contacts_tiers)].flatMap(
    (own) => own?.[0] ?? [],
  )
  return { emails: tiers?.[0]?.emails, contacts: contacts?.contacts }
}

/** Builds the cells with the limits of a plan. Plans for marketing only have prices. */
function limitCells(plan: PlanRow, catalog: readonly PlanRow[]): Record<string, Cell> {
  const isLimited = plan.product !== 'marketing'
  const limits = planFigures(plan.kind, plan)
  const firsts: Partial<Record<QuotaName, number | undefined>> = firstTiers(plan, catalog)
  const cell = (own: number | null, limit: number | null, first?: number): Cell => {
    if (!isLimited) return text('not used', { number: true })
    if (own === null && first !== undefined) return number(first, { detail: 'first tier' })
    return number(limit, { detail: own === null && limit !== null ? 'default' : undefined })
  }
  return {
    ...Object.fromEntries(
      QUOTAS.map(({ title, name, limit }) => [title, cell(plan[limit], limits[name], firsts[name])]),
    ),
    Domains: cell(plan.domains_limit, plan.domains_limit),
    'Per second': cell(plan.send_rate_per_second, limits.rate),
  }
}

const plans = get('operator', PATH, async (_request, { database }) => {
  const rows = await allPlans(database)
  const catalog = await printCatalog(database)
  return show({
    title: 'Plans',
    lead: 'The plans that teams can have, with their limits. Changes apply within a minute.',
    sections: [
      buildTable(
        rows,
        (plan) => ({
          Plan: text(plan.name.en, { detail: plan.key }),
          Kind: text(plan.product === 'marketing' ? 'marketing' : plan.kind),
          ...limitCells(plan, rows),
        }),
        { empty: 'The catalog is empty. Paste one, or run “plan load FILE”.' },
      ),
      buildForm(
        PATH,
        'Replace the catalog',
        [
          field('catalog', 'Catalog as JSON', {
            type: 'textarea',
            value: JSON.stringify(catalog, null, 2),
            rows: 24,
            code: true,
          }),
          hidden('seen', markOf(catalog)),
        ],
        {
          title: 'Change the catalog',
          note: 'Replaces the entire catalog. It must contain every plan that teams use.',
          folded: true,
        },
      ),
    ],
  })
})

const replace = action(
  'operator',
  PATH,
  async (by, { form }) => {
    await loadCatalog(by, jsonTyped(form.get('catalog'), 'catalog'), form.get('seen'))
    const count = (await allPlans(by.tx)).length
    return redirect(PATH, `The catalog now has ${plural(count, 'plan')}.`)
  },
  async ({ form }, { database }) => {
    jsonTyped(form.get('catalog'), 'catalog')
    assertUnreplaced('The catalog', form.get('seen'), markOf(await printCatalog(database)))
    return {
      question: 'Replace the entire catalog?',
      answer: 'Replace the catalog',
      warning: 'Teams keep their plans. The limits of the new catalog apply within a minute.',
    }
  },
)

export const planPages = [plans, replace]
