/** The prefix of all dashboard paths. */
export const BASE = '/dashboard'
