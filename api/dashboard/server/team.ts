/** Finds the team of a page and the user's role. Other teams look as if they didn't exist. visit.ts checks access. */
import type { Membership, Person } from '../../../db/accounts/members/sign-in.ts'
import { teamById } from '../../../db/accounts/teams/teams.sql.ts'
import { isUuid } from '../../../db/validation/strings.ts'
import type { PageDeps } from './deps.ts'
import type { PageRequest, PageTeam } from './page.ts'
import { isFrozen } from './read-only.ts'

const OF_TEAM = /^\/teams\/([^/]+)/
const OF_OPERATOR = /^\/operator(\/|$)/

function asMember(membership: Membership, person: Person): PageTeam {
  const { team_id: id, name, suspended, test, created_at } = membership
  const sees = person.operator ? 'owner' : membership.role
  const role = isFrozen(membership, person) ? 'viewer' : sees
  return { id, name, role, sees, member: true, suspended, test, created_at }
}

/** Returns a team with the user's role, or null if they can't see it. */
async function teamFor(
  person: Person,
  id: string,
  { database }: Pick<PageDeps, 'database'>,
): Promise<PageTeam | null> {
  const membership = person.memberships.find(({ team_id }) => team_id === id)
  if (membership) return asMember(membership, person)
  const team = person.operator ? await teamById(database, id) : null
  if (team === null) return null
  const { name, test, created_at } = team
  const suspended = team.suspended_at !== null
  return { id, name, role: 'owner', sees: 'owner', member: false, suspended, test, created_at }
}

/** Returns the team that this session used last, or the first one if it hasn't used any. */
function latest(person: Person): PageTeam | null {
  const [first, ...others] = person.memberships
  if (!first) return null
  const used = ({ seen_at }: Membership): number => (seen_at === null ? 0 : Date.parse(seen_at))
  return asMember(
    others.reduce((last, other) => (used(other) > used(last) ? other : last), first),
    person,
  )
}

/** Returns the team in the page's path or `?team=`, or the last used one. Null on the operator's pages. */
export async function teamAround(
  person: Person,
  { path, params, query }: Pick<PageRequest, 'path' | 'params' | 'query'>,
  deps: Pick<PageDeps, 'database'>,
): Promise<PageTeam | null> {
  if (person.operator && OF_OPERATOR.test(path)) return null
  const id = (params.team ?? OF_TEAM.exec(path)?.[1] ?? query.get('team') ?? '').toLowerCase()
  return (isUuid(id) ? await teamFor(person, id, deps) : null) ?? latest(person)
}
