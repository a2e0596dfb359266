/** Converts rows to the JSON of the API, with the documented fields and no others. */

import { planFigures } from '../../db/accounts/plans/defaults.ts'
import type { Locale, PlanRow } from '../../db/accounts/plans/plans.sql.ts'
import type { ContactRow } from '../../db/audience/contacts/contacts.sql.ts'
import type { EmailRow } from '../../db/messages/emails/emails.sql.ts'
import { type EmailView, emailView } from '../../db/messages/emails/view.ts'
import { pick } from '../../db/validation/keys.ts'
import type { V1Deps } from './deps.ts'

/** Converts an email and renders its HTML. */
export async function presentEmail(
  { database, versions, secrets }: V1Deps,
  row: EmailRow,
): Promise<EmailView> {
  const version = row.template_version_id
  const known = version === null ? null : await versions(database, [{ team_id: row.team_id, id: version }])
  return emailView(row, version === null ? undefined : known?.get(version), secrets)
}

export const presentContact = (row: ContactRow) => ({
  ...pick(row, 'id', 'email', 'status', 'properties'),
  subscribed_topic_ids: row.topic_ids,
  ...pick(row, 'created_at', 'updated_at'),
})

const unlessNull = <K extends string>(name: K, value: number | null) =>
  value === null ? {} : { [name]: value }

function freeLimits(plan: PlanRow) {
  const { emails, contacts } = planFigures('free', plan)
  return { email_limit: emails, contact_limit: contacts }
}

/** Converts a plan in one language. Limits that aren't set are left out. */
const presentPlan = (plan: PlanRow, locale: Locale) => ({
  key: plan.key,
  kind: plan.kind,
  name: plan.name[locale],
  blurb: plan.blurb[locale],
  cta: plan.cta[locale],
  featured: plan.featured,
  benefits: plan.benefits[locale],
  ...(plan.kind === 'free' ? freeLimits(plan) : {}),
  ...unlessNull('domains_limit', plan.domains_limit),
  ...unlessNull('storage_gb', plan.storage_gb),
  ...unlessNull('send_rate_per_second', plan.send_rate_per_second),
  tiers: plan.kind === 'paid' ? (plan.tiers ?? []) : null,
})

export function presentCatalog(plans: readonly PlanRow[], locale: Locale) {
  const transactional = plans.filter((plan) => plan.product === 'transactional')
  const { emails, contacts } = planFigures(
    'free',
    transactional.find((plan) => plan.kind === 'free'),
  )
  const overage = transactional.find((plan) => plan.kind === 'paid' && plan.overage_per_1000_cents !== null)
  return {
    free_allowances: { emails, contacts },
    overage_per_1000_cents: overage?.overage_per_1000_cents ?? null,
    plans: transactional.map((plan) => presentPlan(plan, locale)),
    contacts_tiers: plans
      .filter((plan) => plan.product === 'marketing' && plan.kind === 'paid')
      .flatMap((plan) => plan.contacts_tiers ?? []),
  }
}
