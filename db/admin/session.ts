/** Verbs of `session`: tokens that act for a team as its people do. */
import { sessionsOfTeam } from '../accounts/credentials/credentials.sql.ts'
import { issueSession } from '../accounts/credentials/issue.ts'
import { endSessions } from '../accounts/credentials/revoke.ts'
import { teamOrRefusal } from '../accounts/teams/view.ts'
import { uuid } from './input.ts'
import { answer, type Verbs } from './noun.ts'

export const verbs: Verbs = (session, admin) => {
  session
    .command('create')
    .description('make a session token of 30 days; it is shown this once')
    .argument('<team>', 'id of the team', uuid)
    .option('--user <email>', 'whose session it is; made a member of the team if need be')
    .action(
      answer(
        async (team: string, { user }: { user?: string }) =>
          await admin.transaction((by) => issueSession(by, team, user ?? null)),
      ),
    )

  session
    .command('list')
    .description('the session tokens of a team that have not expired, revoked ones too')
    .argument('<team>', 'id of the team', uuid)
    .action(
      answer(async (team: string) => {
        const database = await admin.database()
        await teamOrRefusal(database, team)
        return sessionsOfTeam(database, team, await admin.now())
      }),
    )

  session
    .command('revoke')
    .description('end session tokens at once: one, those of a person, or all; answers with those it ended')
    .argument('<team>', 'id of the team', uuid)
    .argument('[id]', 'id of the session', uuid)
    .option('--user <email>', 'all sessions of this person in the team')
    .option('--all', 'all sessions of the team')
    .action(
      answer(
        async (team: string, id: string | undefined, options: { user?: string; all?: boolean }) =>
          await admin.transaction((by) => endSessions(by, team, { id, ...options })),
      ),
    )
}
