/** The effects of a provider's report on a contact (DECISIONS: Delivery reports, Suppression). Pure. */

/**
 * `hard` is a permanent bounce, `soft` counts towards five in a row, `complaint` suppresses permanently, `delivered`
 * ends a row of soft bounces, `unsubscribe` unsubscribes, `none` leaves it untouched.
 */
export type ContactEffect = 'none' | 'hard' | 'soft' | 'complaint' | 'delivered' | 'unsubscribe'

export type SuppressionCause = {
  what: 'permanent bounce' | 'complaint' | 'soft bounces' | 'added by hand'
  /** When it happened, by the provider's clock; or was added by a person. */
  at: string
  /** The email that it was about, the last one of several; null when a person added it. */
  email_id: string | null
  /** The report that it comes from; null when the server refused the recipient at once, or a person added it. */
  report_id: string | null
  /** The provider's words, or the person's. */
  detail: string
}

/** Why an address is suppressed. The lowest rank first: a cause replaces those before it. */
export const CAUSES = ['soft_bounces', 'manual', 'bounce', 'complaint'] as const
export type Cause = (typeof CAUSES)[number]
