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
  verb('create TEAM', 'Create an API key. It is printed only once')
    .requiredOption('--name <name>', 'a name to recognize the key by')
    .requiredOption('--scopes <list>', `comma-separated: ${SCOPES.join(', ')}`, commaList)
    .option('--domain <name>', 'the only domain it can send from')
    .option('--expires <time>', `when it expires, such as ${exampleMoment(new Date())}`, instant)
    .action(
      change((by, team: string, { name, scopes, domain, expires }: KeyOptions) =>
        issueKey(by, team, { name, scopes, domain: domain ?? null, expires_at: expires ?? null }),
      ),
    )

  verb('rotate TEAM ID', 'Replace an API key. The old key works for another 24 hours')
    .option('--expires <time>', `when the new key expires, such as ${exampleMoment(new Date())}`, instant)
    .action(
      change((by, team: string, id: string, { expires }: Pick<KeyOptions, 'expires'>) =>
        rotateKey(by, team, id, expires ?? null),
      ),
    )

  verb('revoke TEAM ID', 'Revoke an API key immediately').action(change(endKey))

  list('List the API keys of a team, including revoked keys', keysOfTeam)
}
