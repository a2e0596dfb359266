/** Verbs of `key`: a team's API keys. */
import { keysOfTeam, SCOPES } from '../accounts/credentials/credentials.sql.ts'
import { issueKey, rotateKey } from '../accounts/credentials/issue.ts'
import { endKey } from '../accounts/credentials/revoke.ts'
import { commaList } from '../process/config.ts'
import { exampleMoment } from '../validation/moments.ts'
import { instant } from './input.ts'
import type { Verbs } from './noun.ts'

type KeyOptions = { name: string; scopes: string[]; domain?: string; expires?: Date }

export const verbs: Verbs = ({ verb, list, change }) => {
  verb('create TEAM', 'make an API key; it is shown only now')
    .requiredOption('--name <name>', 'a name to recognise the key by')
    .requiredOption('--scopes <list>', `comma-separated: ${SCOPES.join(', ')}`, commaList)
    .option('--domain <name>', 'the only domain it may send from')
    .option('--expires <time>', `when it ends, such as ${exampleMoment(new Date())}`, instant)
    .action(
      change((by, team: string, { name, scopes, domain, expires }: KeyOptions) =>
        issueKey(by, team, { name, scopes, domain: domain ?? null, expires_at: expires ?? null }),
      ),
    )

  verb('rotate TEAM ID', 'replace an API key; the old one works for 24 more hours')
    .option('--expires <time>', `when the new one ends, such as ${exampleMoment(new Date())}`, instant)
    .action(
      change((by, team: string, id: string, { expires }: Pick<KeyOptions, 'expires'>) =>
        rotateKey(by, team, id, expires ?? null),
      ),
    )

  verb('revoke TEAM ID', 'end an API key at once').action(change(endKey))

  list('the API keys of a team, revoked ones too, by their prefix', keysOfTeam)
}
