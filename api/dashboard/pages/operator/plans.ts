/** Shows the plan catalog and replaces it from JSON. */

import { loadCatalog, printCatalog } from '../../../../db/accounts/plans/catalog.ts'
import { planFigures } from '../../../../db/accounts/plans/defaults.ts'
import { allPlans, type PlanRow } from '../../../../db/accounts/plans/plans.sql.ts'
import { QUOTAS } from '../../../../db/accounts/plans/quotas.ts'
import { markOf } from '../../../../db/validation/mark.ts'
import { type Cell, number, plural, text } from '../../components/cell.ts'
import { jsonTyped } from '../../components/typed.ts'
import { assertUnreplaced } from '../../server/already.ts'
import { action, buildForm, buildTable, field, get, hidden } from '../../server/builders.ts'
import { redirect, show } from '../../server/page.ts'

const PATH = '/operator/plans'

/** Builds the cell with a limit. @param own the value in the catalog, or null for the default of its kind. */
const limitCell = (own: number | null, limit: number | null): Cell =>
  number(limit, { detail: own === null && limit !== null ? 'default' : undefined })

/** Builds the cells with the limits of a plan. Plans for marketing only have prices. */
function limitCells(plan: PlanRow): Record<string, Cell> {
  const isLimited = plan.product !== 'marketing'
  const limits = planFigures(plan.kind, plan)
  const cell = (own: number | null, limit: number | null) =>
    isLimited ? limitCell(own, limit) : text('not used', { number: true })
  return {
    ...Object.fromEntries(QUOTAS.map(({ title, name, limit }) => [title, cell(plan[limit], limits[name])])),
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
          ...limitCells(plan),
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
