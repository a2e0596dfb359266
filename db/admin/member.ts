/** Verbs of `member`: the people of a team and their roles. */
import { addMember, removeMember } from '../accounts/people/members.ts'
import { membersOfTeam } from '../accounts/people/people.sql.ts'
import { ROLES, type Role } from '../accounts/people/roles.ts'
import { teamOrRefusal } from '../accounts/teams/view.ts'
import { oneOf, uuid } from './input.ts'
import { answer, type Verbs } from './noun.ts'

export const verbs: Verbs = (member, admin) => {
  member
    .command('add')
    .description('make somebody a member, or give a member another role')
    .argument('<team>', 'id of the team', uuid)
    .argument('<email>', 'who')
    .requiredOption('--role <role>', `one of ${ROLES.join(', ')}`, oneOf(ROLES))
    .action(
      answer(
        async (team: string, email: string, { role }: { role: Role }) =>
          await admin.transaction((at) => addMember(at, team, { email, role })),
      ),
    )

  member
    .command('list')
    .description('the members of a team, with their roles')
    .argument('<team>', 'id of the team', uuid)
    .action(
      answer(async (team: string) => {
        const database = await admin.database()
        await teamOrRefusal(database, team)
        return membersOfTeam(database, team)
      }),
    )

  member
    .command('remove')
    .description('end a membership; the team’s pages end at once')
    .argument('<team>', 'id of the team', uuid)
    .argument('<email>', 'who')
    .action(
      answer(async (team: string, email: string) => {
        const { user_id, email: known } = await admin.transaction((at) => removeMember(at, team, email))
        return { user_id, email: known, removed: true }
      }),
    )
}
