/** Verbs of `domain`: a team's sending domains. */
import { addDomain, domainView, removeDomain } from '../accounts/domains/add.ts'
import { domainsOfTeam } from '../accounts/domains/domains.sql.ts'
import { rekeyDomain } from '../accounts/domains/rekey.ts'
import { createTxtLookup, verifyDomain } from '../accounts/domains/verify.ts'
import { ACTOR } from './context.ts'
import { answer, type Verbs } from './noun.ts'

export const verbs: Verbs = ({ verb, list, change, admin }) => {
  verb('add TEAM NAME', 'Add a sending domain with a new DKIM key. Prints the DNS records to publish')
    .option('--verified', 'mark it as verified without a DNS lookup', false)
    .action(
      change(
        async (by, team: string, name: string, { verified }: { verified: boolean }) =>
          domainView(await addDomain(by, team, { name, verified }), admin.spfIncludes),
        'secrets',
      ),
    )

  verb(
    'verify TEAM NAME',
    'Look up the DNS records, and mark the domain as verified if its DKIM key is published',
  )
    .addHelpText(
      'after',
      `
Uses the system’s resolver, or the server in DNS_SERVER (host:port).
Exits with code 1 while the domain is not verified.`,
    )
    .action(
      answer(
        async (team: string, name: string) => {
          const lookupTxt = createTxtLookup(admin.dnsServer)
          const by = { now: await admin.now(), actor: ACTOR }
          const deps = { database: await admin.database(), lookupTxt, spfIncludes: admin.spfIncludes, ...by }
          return verifyDomain(deps, team, name)
        },
        ({ status }) => status === 'verified',
      ),
    )

  verb(
    'rekey TEAM NAME',
    'Create a new DKIM key. It replaces the current key once `domain verify` finds its record',
  ).action(
    change(
      async (by, team: string, name: string) =>
        domainView(await rekeyDomain(by, team, name), admin.spfIncludes),
      'secrets',
    ),
  )

  verb(
    'remove TEAM NAME',
    'Remove a domain. No more email can be sent from it, and its emails are kept',
  ).action(
    change(async (by, team: string, given: string) => {
      const { id, name } = await removeDomain(by, team, given)
      return { id, name, removed: true }
    }),
  )

  list('List the domains of a team and their DNS records', async (database, team) =>
    (await domainsOfTeam(database, team)).map((row) => domainView(row, admin.spfIncludes)),
  )
}
