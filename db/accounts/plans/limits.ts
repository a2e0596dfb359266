/**
 * What the columns of plans and subscriptions hold: integers, and rates that a bucket can be made for. Pure.
 * Promises: a catalog and a team's own figures are held to the same bounds.
 */

/** PostgreSQL's largest integer. */
export const LARGEST_FIGURE = 2_147_483_647

/** In sends per second. */
export const LARGEST_RATE = 1_000_000
