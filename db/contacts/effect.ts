/** What a provider's report can mean for a contact (decisions: delivery reports). Pure. */

/**
 * `hard` is a permanent bounce, `soft` counts towards five in a row, `complaint` suppresses for good, `delivered`
 * ends a row of soft bounces, `none` leaves it alone.
 */
export type ContactEffect = 'none' | 'hard' | 'soft' | 'complaint' | 'delivered'
