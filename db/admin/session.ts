/** Verbs of `session`: tokens with the rights of a team's member. */
import { sessionsOfTeam } from '../accounts/credentials/credentials.sql.ts'
import { issueSession } from '../accounts/credentials/issue.ts'
import { endSessions } from '../accounts/credentials/revoke.ts'
import { uuidArgument } from './input.ts'
import type { Verbs } from './noun.ts'

type Which = { user?: string; all?: boolean }

export const verbs: Verbs = ({ verb, list, change, admin }) => {
  verb('create TEAM', 'Create a session token for 30 days. It is printed only once')
    .option('--user <email>', 'the user, who becomes a member of the team if necessary')
    .action(change((by, team: string, { user }: { user?: string }) => issueSession(by, team, user ?? null)))

  list(
    'List the session tokens of a team that have not expired, including revoked tokens',
    async (database, team) => sessionsOfTeam(database, team, await admin.now()),
  )

  verb(
    'revoke TEAM [ID]',
    'Revoke session tokens immediately: one, those of a user, or all. Prints their IDs and users',
    { ID: ['ID of the session token', uuidArgument] },
  )
    .option('--user <email>', 'all session tokens of this user in the team')
    .option('--all', 'all session tokens of the team')
    .action(
      change((by, team: string, id: string | undefined, which: Which) =>
        endSessions(by, team, { id, ...which }),
      ),
    )
}
