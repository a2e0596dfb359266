/** Descriptions of the changes of a plan catalog. */
import { describeChanges } from '../../../api/dashboard/pages/operator/plan-changes.ts'
import type { PlanRow } from '../../../db/accounts/plans/plans.sql.ts'
import t from '../../support/tap.ts'

/** A plan with these differences. */
const aPlan = (key: string, more: Partial<PlanRow> = {}): PlanRow => {
  const words = { en: key.toUpperCase(), fr: key }
  return {
    ...{ key, product: 'transactional', kind: 'paid', name: words, blurb: words, cta: words },
    ...{ benefits: { en: [], fr: [] }, featured: false, tiers: null, contacts_tiers: null },
    ...{ email_limit: 1_000, contact_limit: null, whatsapp_limit: null, domains_limit: 5 },
    ...{ storage_gb: null, send_rate_per_second: 10, overage_per_1000_cents: null },
    ...more,
  }
}

const NO_USE = new Map()

t.test('names changed limits with the affected teams', async (t) => {
  const use = new Map([['pro', { plan_key: 'pro', teams: 12, own: 3 }]])
  const after = aPlan('pro', { email_limit: 5_000, domains_limit: null })
  const changed = describeChanges([aPlan('pro')], [after], use)
  t.equal(
    changed,
    'PRO: emails 1,000 → 5,000, domains 5 → default (12 teams, 3 of them with their own limits).',
  )
})

t.test('names new and removed plans, and other changes', async (t) => {
  const before = [aPlan('old'), aPlan('same'), aPlan('dear')]
  const after = [aPlan('same'), aPlan('dear', { overage_per_1000_cents: 90 }), aPlan('new')]
  const words = describeChanges(before, after, NO_USE)
  t.equal(words, 'OLD is removed. DEAR: only texts or prices change. NEW is new.')
  t.equal(describeChanges(before, before, NO_USE), 'Nothing changes.')
})

t.test('describes up to six plans', async (t) => {
  const plans = Array.from({ length: 9 }, (_, at) => aPlan(`plan${at}`))
  const words = describeChanges([], plans, NO_USE)
  t.equal(words.match(/is new\./g)?.length, 6)
  t.match(words, /3 more plans\.$/)
})
