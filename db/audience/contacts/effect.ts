/** The effects of a provider's report on a contact (DECISIONS: Delivery reports, Suppression). Pure. */

/** `soft` counts towards five in a row, and `delivered` ends the series. `complaint` suppresses permanently. */
export type ContactEffect = 'none' | 'hard' | 'soft' | 'complaint' | 'delivered' | 'unsubscribe'

export type SuppressionCause = {
  what: 'permanent bounce' | 'complaint' | 'soft bounces' | 'added by hand'
  /** The provider's time, or when a user added it. */
  at: string
  /** The email that caused it, the last one if several did. Null if a user added it. */
  email_id: string | null
  /** The report that caused it. Null if the server rejected the recipient during delivery, or a user added it. */
  report_id: string | null
  /** The provider's response, or the user's reason. */
  detail: string
}

/** Why an address is suppressed. A later cause in this list replaces an earlier one. */
export const CAUSES = ['soft_bounces', 'manual', 'bounce', 'complaint'] as const
export type Cause = (typeof CAUSES)[number]
