/** Which suppressions stop a team's transactional email. Pure. DECISIONS: Suppression. */
export const SUPPRESS_TRANSACTIONAL = ['bounces', 'bounces_and_complaints', 'nothing'] as const
export type SuppressTransactional = (typeof SUPPRESS_TRANSACTIONAL)[number]
