/** Shows the plan catalog and replaces it from JSON. */

import { loadCatalog, parseCatalog, printCatalog } from '../../../../db/accounts/plans/catalog.ts'
import { planFigures } from '../../../../db/accounts/plans/defaults.ts'
import { allPlans, type PlanRow, type PlanUse, planUse } from '../../../../db/accounts/plans/plans.sql.ts'
import { isPeriodic, QUOTAS, type QuotaName } from '../../../../db/accounts/plans/quotas.ts'
import { plural } from '../../../../db/plural.ts'
import { markOf } from '../../../../db/validation/mark.ts'
import { byteWords, type Cell, number, text } from '../../components/cell.ts'
import { jsonTyped } from '../../components/typed.ts'
import { assertUnreplaced } from '../../server/already.ts'
import { action, buildForm, buildTable, compact, field, get, hidden } from '../../server/builders.ts'
import { redirect, show } from '../../server/page.ts'
import { describeChanges } from './plan-changes.ts'

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

/** False for plans without limits. */
const hasLimits = ({ product }: PlanRow): boolean => product !== 'marketing'

function limitCells(plan: PlanRow, catalog: readonly PlanRow[]): Record<string, Cell> {
  const limits = planFigures(plan.kind, plan)
  const firsts: Partial<Record<QuotaName, number | undefined>> = firstTiers(plan, catalog)
  const cell = (own: number | null, limit: number | null, first?: number): Cell => {
    if (own === null && first !== undefined) return number(first, { detail: 'first tier' })
    return number(limit, { detail: own === null && limit !== null ? 'default' : undefined })
  }
  return {
    ...Object.fromEntries(
      QUOTAS.map(({ title, name, limit }) => [title, cell(plan[limit], limits[name], firsts[name])]),
    ),
    Domains: cell(plan.domains_limit, plan.domains_limit),
    'Emails/s': cell(plan.send_rate_per_second, limits.rate),
    Attachments: storageCell(plan),
  }
}

const GB = 1e9

const storageCell = ({ storage_gb: own }: PlanRow): Cell =>
  own === null ? number(null) : text(byteWords(own * GB), { number: true })

const NO_LIMIT = text(null, { number: true })

/** Builds the cells of a plan. One with only prices has no limits, and no team can have it. */
function planCells(plan: PlanRow, { catalog, uses }: { catalog: readonly PlanRow[]; uses: Uses }) {
  const cells = limitCells(plan, catalog)
  const isListed = hasLimits(plan)
  return {
    Plan: text(plan.name.en, {
      detail:
        compact([isListed ? aboutName(plan) : 'only prices', lowestPrice(plan)]).join(', ') || undefined,
    }),
    Teams: isListed ? teamsCell(plan, uses) : NO_LIMIT,
    ...(isListed ? cells : Object.fromEntries(Object.keys(cells).map((label) => [label, NO_LIMIT]))),
  }
}

const MAX_COUNTED = 10_000

type Uses = ReadonlyMap<string, PlanUse>

function teamsCell({ key }: PlanRow, uses: Uses): Cell {
  const use = uses.get(key)
  if (!use) return number(0)
  return number(use.teams, {
    href: `/operator/teams?${new URLSearchParams({ plan: key })}`,
    detail: use.own > 0 ? `${number(use.own).text} with own limits` : undefined,
  })
}

/** Formats the lowest price of a plan with tiers. The catalog has no currency. */
function lowestPrice({ tiers, contacts_tiers }: PlanRow): string | false {
  const prices = (tiers ?? contacts_tiers ?? []).map(({ monthly_cents }) => monthly_cents)
  return prices.length > 0 && `from ${(Math.min(...prices) / 100).toFixed(2)} a month`
}

/** Returns the ID and the kind of a plan, unless they are its name. */
const aboutName = ({ key, kind, name }: PlanRow): string | undefined =>
  [...new Set([key, kind])].filter((word) => word !== name.en.toLowerCase()).join(', ') || undefined

const list = new Intl.ListFormat('en')

const countNote = (uses: Uses): string | undefined =>
  [...uses.values()].reduce((sum, { teams }) => sum + teams, 0) >= MAX_COUNTED
    ? `Only ${number(MAX_COUNTED).text} teams were counted.`
    : undefined

const plans = get('operator', PATH, async (_request, { database }) => {
  const rows = await allPlans(database)
  const printed = await printCatalog(database)
  const uses = await planUse(database, MAX_COUNTED)
  return show({
    title: 'Plans',
    lead: `A team has the limits of its plan unless an operator sets its own. Limits of ${list.format(QUOTAS.filter(isPeriodic).map(({ noun }) => noun))} apply to a team’s current period. A paid plan without limits has those of its first tier of prices.`,
    sections: [
      buildTable(
        rows.toSorted((one, other) => Number(hasLimits(other)) - Number(hasLimits(one))),
        (plan) => planCells(plan, { catalog: rows, uses }),
        {
          id: 'grid',
          wrap: ['Plan', 'Teams'],
          note: countNote(uses),
          empty: 'No plans yet. Change the plans here, or run “plan load FILE”.',
        },
      ),
      buildForm(PATH, 'Replace all plans', {
        title: 'Change plans',
        note: 'Replaces all plans, so keep every plan that teams use. You see the changed limits before you confirm.',
        folded: 'quiet',
        fields: [
          field('catalog', 'Plans as JSON', {
            type: 'textarea',
            value: JSON.stringify(printed, null, 2),
            rows: 24,
            code: true,
          }),
          hidden('seen', markOf(printed)),
        ],
      }),
    ],
  })
})

const replace = action('operator', PATH, async (by, { form }) => {
  await loadCatalog(by, jsonTyped(form.get('catalog'), 'catalog'), form.get('seen'))
  const count = (await allPlans(by.tx)).length
  return redirect(
    PATH,
    `The plans were replaced. There ${count === 1 ? 'is' : 'are'} now ${plural(count, 'plan')}.`,
  )
}).confirm(async ({ form }, { database }) => {
  const next = parseCatalog(jsonTyped(form.get('catalog'), 'catalog'))
  assertUnreplaced('The list of plans', form.get('seen'), markOf(await printCatalog(database)))
  return {
    question: 'Replace all plans?',
    answer: 'Replace all plans',
    warning: `${describeChanges(await allPlans(database), next, await planUse(database, MAX_COUNTED))} Teams keep their plans. New limits apply within a minute.`,
  }
})

export const planPages = [plans, replace]
