/** Verbs of `domain`: a team's sending domains. */
import { addDomain, domainView, removeDomain } from '../accounts/domains/add.ts'
import { domainsOfTeam } from '../accounts/domains/domains.sql.ts'
import { rekeyDomain } from '../accounts/domains/rekey.ts'
import { createTxtLookup, verifyDomain } from '../accounts/domains/verify.ts'
import { RequestError } from '../errors.ts'
import { changeRamp, shownRamp } from '../messages/broadcasts/ramp.ts'
import { ACTOR } from './context.ts'
import { answer, type Verbs } from './noun.ts'

/** Today's limit, or null for `off`. @throws RequestError bad_request. */
function rampLimit(given: string): number | null {
  if (given === 'off') return null
  if (/^[1-9]\d{0,8}$/.test(given)) return Number(given)
  throw new RequestError('bad_request', 'LIMIT must be off, or a whole number of emails from 1 on')
}

const rampVerb: Verbs = ({ verb, change, admin }) => {
  verb('ramp TEAM NAME LIMIT', 'start slowly with broadcasts: how many emails may be sent today, or “off”')
    .addHelpText(
      'after',
      '\nThe limit doubles after each day that used half of it with few bounces and complaints, until 100,000. It counts\nper domain name over all live teams. “off” holds whatever DOMAIN_RAMP says.',
    )
    .action(
      change(async (by, team: string, name: string, given: string) => {
        const row = await changeRamp(by, team, name, rampLimit(given))
        return { ...domainView(row, admin.spfIncludes), ramp: await shownRamp(by.tx, row.name) }
      }),
    )
}

export const verbs: Verbs = (noun) => {
  const { verb, list, change, admin } = noun
  verb('add TEAM NAME', 'add a sending domain with a new DKIM key; answers with the DNS records to publish')
    .option('--verified', 'take it as verified without looking at DNS', false)
    .action(
      change(
        async (by, team: string, name: string, { verified }: { verified: boolean }) =>
          domainView(await addDomain(by, team, { name, verified }), admin.spfIncludes),
        'secrets',
      ),
    )

  verb(
    'verify TEAM NAME',
    'look the DNS records up, and mark the domain verified when its DKIM key is published',
  )
    .addHelpText(
      'after',
      '\nAsks the system’s resolver, or the server that DNS_SERVER names (host:port).\nExit code 1 while the domain is not verified.',
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
    'make a new DKIM key, to follow the old one once `domain verify` finds its record',
  ).action(
    change(
      async (by, team: string, name: string) =>
        domainView(await rekeyDomain(by, team, name), admin.spfIncludes),
      'secrets',
    ),
  )

  rampVerb(noun)

  verb('remove TEAM NAME', 'remove a domain: nothing is sent from it any more, its emails stay').action(
    change(async (by, team: string, given: string) => {
      const { id, name } = await removeDomain(by, team, given)
      return { id, name, removed: true }
    }),
  )

  list('the domains of a team, with their DNS records', async (database, team) =>
    (await domainsOfTeam(database, team)).map((row) => domainView(row, admin.spfIncludes)),
  )
}
