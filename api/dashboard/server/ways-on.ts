/** Finds ways to continue from a page with an error. */
import { membersOfTeam } from '../../../db/accounts/members/people.sql.ts'
import { ROLES, reaches } from '../../../db/accounts/members/roles.ts'
import type { Person } from '../../../db/accounts/members/sign-in.ts'
import { fill } from '../../../db/fill.ts'
import type { Link } from '../components/section.ts'
import { TEXTS } from '../texts.ts'
import type { PageDeps } from './deps.ts'
import type { Finder } from './find.ts'
import type { Page, PageTeam } from './page.ts'

const OWNERS_NAMED = 3

type Visited = { path: string; person: Person | null; team: PageTeam | null }

/** True if a path is below the user's team or, for operators, the operator's pages. */
const isInside = ({ path, person, team }: Visited): boolean =>
  (team !== null && path.startsWith(`/teams/${team.id}/`)) ||
  (person?.operator === true && path.startsWith('/operator/'))

const parentOf = (path: string): string => path.slice(0, path.lastIndexOf('/'))

/** Checks the user's role in the team. Pages without a team need none. */
function mayOpen({ team }: Visited, { access }: Page): boolean {
  const needed = ROLES.find((role) => role === access)
  return !needed || (team !== null && reaches(team.sees, needed))
}

/** Returns the link to the nearest page above a path, except pages above the user's role. */
export function linkAbove(visited: Visited, finder: Finder): Link[] {
  if (!isInside(visited)) return []
  let above = finder.above(parentOf(visited.path))
  while (above && !mayOpen(visited, above.page)) above = finder.above(parentOf(above.path))
  return above ? [{ href: above.path, label: 'Go back' }] : []
}

/** Returns a sentence with the owners, who can give a member a higher role, or ''. */
export async function ownersToAsk(
  { person, team }: Visited,
  page: Page | undefined,
  { database }: Pick<PageDeps, 'database'>,
): Promise<string> {
  const needed = ROLES.find((role) => role === page?.access)
  if (!needed || !person || !team || reaches(team.sees, needed)) return ''
  const members = await membersOfTeam(database, team.id)
  const owners = members.filter(({ role }) => role === 'owner').map(({ email }) => email)
  return owners.length === 0
    ? ''
    : fill(TEXTS.askOwner, { owners: owners.slice(0, OWNERS_NAMED).join(' or ') })
}
