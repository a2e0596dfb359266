/** Verbs of `domain`: a team's sending domains. */
import { addDomain, domainView, removeDomain } from '../accounts/domains/add.ts'
import { domainsOfTeam } from '../accounts/domains/domains.sql.ts'
import { rekeyDomain } from '../accounts/domains/rekey.ts'
import { createTxtLookup, type Verification, verifyDomain } from '../accounts/domains/verify.ts'
import { teamOrRefusal } from '../accounts/teams/view.ts'
import { ACTOR } from './context.ts'
import { uuid } from './input.ts'
import { answer, type Verbs } from './noun.ts'

const isVerified = ({ status }: Verification): boolean => status === 'verified'

const adding: Verbs = (domain, admin) => {
  domain
    .command('add')
    .description('add a sending domain with a new DKIM key; answers with the DNS records to publish')
    .argument('<team>', 'id of the team', uuid)
    .argument('<name>', 'the domain, such as example.com')
    .option('--verified', 'take it as verified without looking at DNS', false)
    .action(
      answer(async (team: string, name: string, { verified }: { verified: boolean }) => {
        const secrets = await admin.secrets()
        const row = await admin.transaction((by) => addDomain({ ...by, secrets }, team, { name, verified }))
        return domainView(row)
      }),
    )

  domain
    .command('verify')
    .description('look the DNS records up, and mark the domain verified when its DKIM key is published')
    .argument('<team>', 'id of the team', uuid)
    .argument('<name>', 'the domain')
    .addHelpText(
      'after',
      '\nAsks the system’s resolver, or the server that DNS_SERVER names (host:port).\nExit code 1 while the domain is not verified.',
    )
    .action(
      answer(async (team: string, name: string) => {
        const lookupTxt = createTxtLookup(admin.dnsServer)
        const deps = { database: await admin.database(), lookupTxt, now: await admin.now(), actor: ACTOR }
        return verifyDomain(deps, team, name)
      }, isVerified),
    )
}

const keeping: Verbs = (domain, admin) => {
  domain
    .command('rekey')
    .description('make a new DKIM key, to follow the old one once `domain verify` finds its record')
    .argument('<team>', 'id of the team', uuid)
    .argument('<name>', 'the domain')
    .action(
      answer(async (team: string, name: string) => {
        const secrets = await admin.secrets()
        return domainView(await admin.transaction((by) => rekeyDomain({ ...by, secrets }, team, name)))
      }),
    )

  domain
    .command('remove')
    .description('remove a domain: nothing is sent from it any more, its emails stay')
    .argument('<team>', 'id of the team', uuid)
    .argument('<name>', 'the domain')
    .action(
      answer(async (team: string, name: string) => {
        const row = await admin.transaction((by) => removeDomain(by, team, name))
        return { id: row.id, name: row.name, removed: true }
      }),
    )

  domain
    .command('list')
    .description('the domains of a team, with their DNS records')
    .argument('<team>', 'id of the team', uuid)
    .action(
      answer(async (team: string) => {
        const database = await admin.database()
        await teamOrRefusal(database, team)
        return (await domainsOfTeam(database, team)).map(domainView)
      }),
    )
}

export const verbs: Verbs = (domain, admin) => {
  adding(domain, admin)
  keeping(domain, admin)
}
