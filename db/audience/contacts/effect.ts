/** What a provider's report can mean for a contact (DECISIONS: Delivery reports, Suppression). Pure. */

/**
 * `hard` is a permanent bounce, `soft` counts towards five in a row, `complaint` suppresses for good, `delivered`
 * ends a row of soft bounces, `none` leaves it alone.
 */
export type ContactEffect = 'none' | 'hard' | 'soft' | 'complaint' | 'delivered'

/** What suppressed a contact, for operators and the dashboard. */
export type SuppressionCause = {
  what: 'permanent bounce' | 'complaint' | 'soft bounces'
  /** When it happened, by the provider's clock. */
  at: string
  /** The email that it was about; the last one of several. */
  email_id: string
  /** The report that it comes from; null when the server refused the recipient in the dialogue. */
  report_id: string | null
  /** The provider's words. */
  detail: string
}
