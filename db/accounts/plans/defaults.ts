/**
 * What a plan allows where its catalog sets no figure (DECISIONS: Allowance). Pure.
 * Promises: the limits that are enforced and the catalog that is shown say the same, since both ask here.
 */
import type { PlanRow } from './plans.sql.ts'

/** `rate` is in sends per second; null means no limit. */
type Figures = {
  emails: number | null
  contacts: number | null
  whatsapp: number | null
  rate: number
}

/** A paid plan's emails are those of its first tier. */
const DEFAULTS = {
  free: { emails: 5_000, contacts: 1_000, whatsapp: 250, rate: 1 },
  paid: { emails: null, contacts: null, whatsapp: 10_000, rate: 10 },
  custom: { emails: null, contacts: null, whatsapp: null, rate: 10 },
} as const satisfies Record<PlanRow['kind'], Figures>

type SetFigures = Pick<PlanRow, 'email_limit' | 'contact_limit' | 'whatsapp_limit' | 'send_rate_per_second'>

/** The figures of a plan of this kind: those that are set, else the defaults. */
export function planFigures<K extends PlanRow['kind']>(kind: K, set: Partial<SetFigures> = {}) {
  const defaults: (typeof DEFAULTS)[K] = DEFAULTS[kind]
  return {
    emails: set.email_limit ?? defaults.emails,
    contacts: set.contact_limit ?? defaults.contacts,
    whatsapp: set.whatsapp_limit ?? defaults.whatsapp,
    rate: set.send_rate_per_second ?? defaults.rate,
  }
}
