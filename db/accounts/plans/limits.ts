/** The ranges of columns in plans and subscriptions. A catalog and a team's own limits have the same ranges. */

/** PostgreSQL's largest integer. */
export const LARGEST_FIGURE = 2_147_483_647

/** In sends per second. */
export const LARGEST_RATE = 1_000_000
