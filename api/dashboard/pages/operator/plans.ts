/** Shows the plan catalog and replaces it from JSON. */

import { loadCatalog, printCatalog } from '../../../../db/accounts/plans/catalog.ts'
import { allPlans } from '../../../../db/accounts/plans/plans.sql.ts'
import { QUOTAS } from '../../../../db/accounts/plans/quotas.ts'
import { markOf } from '../../../../db/validation/mark.ts'
import { number, plural, text } from '../../components/cell.ts'
import { jsonTyped } from '../../components/typed.ts'
import { action, buildForm, buildTable, field, get, hidden } from '../../server/builders.ts'
import { redirect, show } from '../../server/page.ts'

const PATH = '/operator/plans'

/** Builds the cell with a limit. Null means no limit or the service's default. */
const figure = (value: number | null) => (value === null ? text(null, { number: true }) : number(value))

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
          ...Object.fromEntries(QUOTAS.map(({ title, limit }) => [title, figure(plan[limit])])),
          Domains: figure(plan.domains_limit),
          'Per second': figure(plan.send_rate_per_second),
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
  ({ form }) => {
    jsonTyped(form.get('catalog'), 'catalog')
    return {
      question: 'Replace the entire catalog?',
      answer: 'Replace the catalog',
      warning: 'Teams keep their plans. The limits of the new catalog apply within a minute.',
    }
  },
)

export const planPages = [plans, replace]
