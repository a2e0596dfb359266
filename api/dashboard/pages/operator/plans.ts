/** The plan catalog: a table to read, and the whole of it as JSON to change. */

import { loadCatalog, printCatalog } from '../../../../db/accounts/plans/catalog.ts'
import { allPlans } from '../../../../db/accounts/plans/plans.sql.ts'
import { QUOTAS } from '../../../../db/accounts/plans/quotas.ts'
import { Refusal } from '../../../../db/errors.ts'
import { number, plural, text } from '../../drawn/cell.ts'
import { inPerson } from '../../served/act.ts'
import { get, post } from '../../served/made.ts'
import { redirect, show } from '../../served/page.ts'

const PATH = '/operator/plans'

/** A figure of a plan; nothing set means no limit, or the service's default. */
const figure = (value: number | null) => (value === null ? text(null, { number: true }) : number(value))

const plans = get('operator', PATH, async (_request, { database }) => {
  const rows = await allPlans(database)
  const catalog = JSON.stringify(await printCatalog(database), null, 2)
  return show({
    title: 'Plans',
    lead: 'What GET /v1/plans shows, and what teams are held to. A change shows within a minute.',
    sections: [
      {
        kind: 'table',
        columns: [
          { label: 'Plan' },
          { label: 'Kind' },
          ...QUOTAS.map(({ title }) => ({ label: title, number: true })),
          { label: 'Domains', number: true },
          { label: 'Per second', number: true },
        ],
        rows: rows.map((plan) => ({
          cells: [
            text(plan.name.en, { detail: plan.key }),
            text(plan.product === 'marketing' ? 'marketing' : plan.kind),
            ...QUOTAS.map(({ limit }) => figure(plan[limit])),
            figure(plan.domains_limit),
            figure(plan.send_rate_per_second),
          ],
        })),
        empty: 'The catalog is empty: paste one below, or run “plan load FILE”.',
      },
      {
        kind: 'form',
        title: 'Change the catalog',
        note: 'The whole catalog is replaced, or nothing. A plan that teams are on cannot be left out.',
        action: PATH,
        method: 'post',
        folded: true,
        fields: [
          {
            name: 'catalog',
            label: 'Catalog as JSON',
            type: 'textarea',
            value: catalog,
            rows: 24,
            code: true,
          },
        ],
        submit: 'Replace the catalog',
        confirm: 'Replace the whole catalog?',
        warning: 'Teams keep their plans; the limits of each are those of the new catalog, within a minute.',
      },
    ],
  })
})

/** @throws Refusal bad_request saying where the JSON breaks. */
function readCatalog(source: string): unknown {
  try {
    return JSON.parse(source)
  } catch (error) {
    throw new Refusal('bad_request', `the catalog is not valid JSON: ${(error as Error).message}`)
  }
}

const replace = post('operator', PATH, async (request, deps) => {
  const content = readCatalog(request.form.get('catalog') ?? '')
  const count = await inPerson(request, deps, async (by) => {
    await loadCatalog(by, content)
    return (await allPlans(by.tx)).length
  })
  return redirect(PATH, `The catalog has ${plural(count, 'plan')} now.`)
})

export const planPages = [plans, replace]
