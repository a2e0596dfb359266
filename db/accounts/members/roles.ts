/**
 * What a member of a team may do on the dashboard. Pure.
 * A viewer reads; an editor also changes templates, topics and contacts, and requeues; an owner also manages keys,
 * domains and people. An operator, a flag of the person and no role, may do what an owner may in every team.
 */

/** The least first: each may do what those before it may. */
export const ROLES = ['viewer', 'editor', 'owner'] as const
export type Role = (typeof ROLES)[number]

/** Whether a role may do what `needed` may. */
export const reaches = (role: Role, needed: Role): boolean => ROLES.indexOf(role) >= ROLES.indexOf(needed)

/** Of two roles the one that may do less. */
export const lesser = (one: Role, other: Role): Role => (reaches(one, other) ? other : one)
