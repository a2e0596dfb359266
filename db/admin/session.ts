/** Verbs of `session`: tokens that act for a team as its people do. */
import { sessionsOfTeam } from '../accounts/credentials/credentials.sql.ts'
import { issueSession } from '../accounts/credentials/issue.ts'
import { endSessions } from '../accounts/credentials/revoke.ts'
import type { Verbs } from './noun.ts'

type Which = { user?: string; all?: boolean }

export const verbs: Verbs = ({ verb, list, change, admin }) => {
  verb('create TEAM', 'make a session token of 30 days; it is shown only now')
    .option('--user <email>', 'whose session it is; made a member of the team if need be')
    .action(change((by, team: string, { user }: { user?: string }) => issueSession(by, team, user ?? null)))

  list('the session tokens of a team that have not expired, revoked ones too', async (database, team) =>
    sessionsOfTeam(database, team, await admin.now()),
  )

  verb(
    'revoke TEAM [ID]',
    'end session tokens at once: one, those of a person, or all; answers with those it ended',
  )
    .option('--user <email>', 'all sessions of this person in the team')
    .option('--all', 'all sessions of the team')
    .action(
      change((by, team: string, id: string | undefined, which: Which) =>
        endSessions(by, team, { id, ...which }),
      ),
    )
}
