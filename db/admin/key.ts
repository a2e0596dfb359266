/** Verbs of `key`: a team's API keys. */
import { keysOfTeam, SCOPES } from '../accounts/credentials/credentials.sql.ts'
import { issueKey } from '../accounts/credentials/issue.ts'
import { endKey } from '../accounts/credentials/revoke.ts'
import { teamOrRefusal } from '../accounts/teams/view.ts'
import { commaList } from '../process/config.ts'
import { instant, uuid } from './input.ts'
import { answer, type Verbs } from './noun.ts'

type KeyOptions = { name: string; scopes: string[]; domain?: string; expires?: Date }

export const verbs: Verbs = (key, admin) => {
  key
    .command('create')
    .description('make an API key; it is shown this once')
    .argument('<team>', 'id of the team', uuid)
    .requiredOption('--name <name>', 'a name to recognise the key by')
    .requiredOption('--scopes <list>', `comma-separated: ${SCOPES.join(', ')}`, commaList)
    .option('--domain <name>', 'the only domain it may send from')
    .option('--expires <time>', 'when it ends, such as 2027-01-31T00:00:00Z', instant)
    .action(
      answer(async (team: string, { name, scopes, domain = undefined, expires = undefined }: KeyOptions) => {
        const request = { name, scopes, domain: domain ?? null, expires_at: expires ?? null }
        return admin.transaction((by) => issueKey(by, team, request))
      }),
    )

  key
    .command('revoke')
    .description('end an API key at once')
    .argument('<team>', 'id of the team', uuid)
    .argument('<id>', 'id of the key', uuid)
    .action(answer(async (team: string, id: string) => admin.transaction((by) => endKey(by, team, id))))

  key
    .command('list')
    .description('the API keys of a team, revoked ones too, by their prefix')
    .argument('<team>', 'id of the team', uuid)
    .action(
      answer(async (team: string) => {
        const database = await admin.database()
        await teamOrRefusal(database, team)
        return keysOfTeam(database, team)
      }),
    )
}
