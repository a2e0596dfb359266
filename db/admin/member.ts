/** Verbs of `member`: the members of a team and their roles. */
import { addMember, removeMember } from '../accounts/members/members.ts'
import { membersOfTeam } from '../accounts/members/people.sql.ts'
import { ROLES, type Role } from '../accounts/members/roles.ts'
import { oneOf } from './input.ts'
import type { Verbs } from './noun.ts'

const WHO = { EMAIL: ['the member’s address'] } as const

export const verbs: Verbs = ({ verb, list, change }) => {
  verb('add TEAM EMAIL', 'Add a member, or change a member’s role', WHO)
    .requiredOption('--role <role>', `one of ${ROLES.join(', ')}`, oneOf(ROLES))
    .action(
      change((by, team: string, email: string, { role }: { role: Role }) =>
        addMember(by, team, { email, role }),
      ),
    )

  list('List the members of a team and their roles', membersOfTeam)

  verb('remove TEAM EMAIL', 'Remove a member. Access to the team’s pages ends immediately', WHO).action(
    change(async (by, team: string, given: string) => {
      const { user_id, email } = await removeMember(by, team, given)
      return { user_id, email, removed: true }
    }),
  )
}
