/** Verbs of `session`: tokens that act for a team as its people do. */
import { issueSession } from '../credentials/issue.ts'
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
          await admin.transaction((at) => issueSession(at, team, user ?? null)),
      ),
    )
}
