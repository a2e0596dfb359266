/**
 * Roles of members on the dashboard. A viewer reads. An editor also changes templates, topics and contacts, and
 * requeues. An owner also manages keys, domains and members. An operator has the permissions of an owner in every
 * team.
 */

/** Least privileged first. Each includes the ones before it. */
export const ROLES = ['viewer', 'editor', 'owner'] as const
export type Role = (typeof ROLES)[number]

export const reaches = (role: Role, needed: Role): boolean => ROLES.indexOf(role) >= ROLES.indexOf(needed)

/** Returns the less privileged role. */
export const lesser = (one: Role, other: Role): Role => (reaches(one, other) ? other : one)
