/** Verbs of `key`: a team's API keys. */
import { keysOfTeam, revokeKey, SCOPES } from '../credentials/credentials.sql.ts'
import { issueKey } from '../credentials/issue.ts'
import { displayPrefix } from '../credentials/token.ts'
import { Refusal } from '../errors.ts'
import type { At } from '../postgres/pool.ts'
import { commaList } from '../process/config.ts'
import { teamOrRefusal } from '../teams/view.ts'
import { instant, uuid } from './input.ts'
import { answer, type Verbs } from './noun.ts'

type KeyOptions = { name: string; scopes: string[]; domain?: string; expires?: Date }

export const verbs: Verbs = (key, admin) => {
  key
    .command('create')
    .description('make an API key; it is shown this once')
    .argument('<team>', 'id of the team', uuid)
    .requiredOption('--name <name>', 'what tells it from other keys')
    .requiredOption('--scopes <list>', `comma-separated: ${SCOPES.join(', ')}`, commaList)
    .option('--domain <name>', 'the only domain it may send from')
    .option('--expires <time>', 'when it ends, such as 2027-01-31T00:00:00Z', instant)
    .action(
      answer(async (team: string, { name, scopes, domain = undefined, expires = undefined }: KeyOptions) => {
        const request = { name, scopes, domain: domain ?? null, expires_at: expires ?? null }
        return admin.change(
          (at) => issueKey(at, team, request),
          ({ key, scopes }) => ({
            ...{ team_id: team, action: 'key.create', subject: name },
            detail: `${displayPrefix(key)}: ${scopes.join(', ')}`,
          }),
        )
      }),
    )

  key
    .command('revoke')
    .description('end an API key at once')
    .argument('<team>', 'id of the team', uuid)
    .argument('<id>', 'id of the key', uuid)
    .action(
      answer(async (team: string, id: string) => {
        const revoke = async ({ tx, now }: At) => {
          await teamOrRefusal(tx, team)
          const row = await revokeKey(tx, team, id, now)
          if (!row) throw new Refusal('not_found', `there is no key ${id} in this team`)
          return row
        }
        return admin.change(revoke, ({ prefix, name }) => ({
          ...{ team_id: team, action: 'key.revoke' },
          ...{ subject: prefix, detail: name },
        }))
      }),
    )

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
