/** Verbs of `domain`: a team's sending domains. */
import { addDomain, domainView, removeDomain } from '../accounts/domains/add.ts'
import { createDomainLookups } from '../accounts/domains/dns-lookups.ts'
import { domainsOfTeam } from '../accounts/domains/domains.sql.ts'
import { setEd25519, setReturnPath } from '../accounts/domains/options.ts'
import { rekeyDomain } from '../accounts/domains/rekey.ts'
import { verifyDomain } from '../accounts/domains/verify.ts'
import { RequestError } from '../errors.ts'
import { changeRamp, shownRamp, shownRamps } from '../messages/broadcasts/ramp.ts'
import { ACTOR, type Admin } from './context.ts'
import { onOrOff } from './input.ts'
import { answer, type Verbs } from './noun.ts'

const SWITCH = { 'on|off': ['on or off', onOrOff] } as const

/** The dependencies of verbs that look up DNS records and store the result. */
const looking = async (admin: Admin) => ({
  ...{ database: await admin.database(), now: await admin.now(), actor: ACTOR },
  ...{ ...createDomainLookups(admin.dnsServer), returnDomain: admin.returnDomain },
})

/** Today's limit, or null for `off`. @throws RequestError bad_request. */
function rampLimit(given: string): number | null {
  if (given === 'off') return null
  if (/^[1-9]\d{0,8}$/.test(given)) return Number(given)
  throw new RequestError('bad_request', 'LIMIT must be off, or an integer, 1 or more.')
}

const rampVerb: Verbs = ({ verb, change, admin }) => {
  verb(
    'ramp TEAM NAME LIMIT',
    'Set the ramp-up of a new domain: how many broadcast emails can be sent today (“off” for no limit)',
    { LIMIT: ['the number of emails, or off'] },
  )
    .addHelpText(
      'after',
      '\nThe limit doubles, up to 100,000, after each day on which at least half of it was used, fewer than 2 % of emails\nbounced and fewer than 0.1 % were reported as spam. All live teams that send from the domain share it.\n“off” overrides DOMAIN_RAMP.',
    )
    .action(
      change(async (by, team: string, name: string, given: string) => {
        const row = await changeRamp(by, team, name, rampLimit(given))
        return { ...domainView(row, admin.returnDomain), ramp: await shownRamp(by.tx, row.name) }
      }),
    )
}

export const verbs: Verbs = (noun) => {
  records(noun)
  lists(noun)
  switches(noun)
  rampVerb(noun)
}

const records: Verbs = ({ verb, change, admin }) => {
  verb('add TEAM NAME', 'Add a sending domain with a new DKIM key. Prints the DNS records to publish')
    .option('--verified', 'mark it as verified without a DNS lookup', false)
    .action(
      change(
        async (by, team: string, name: string, { verified }: { verified: boolean }) =>
          domainView(await addDomain(by, team, { name, verified }), admin.returnDomain),
        'secrets',
      ),
    )

  verb(
    'verify TEAM NAME',
    'Look up the DNS records, and mark the domain as verified if its DKIM key is published',
  )
    .addHelpText(
      'after',
      '\nUses the system’s resolver, or the server in DNS_SERVER (host:port).\nExits with code 1 while the domain is not verified.',
    )
    .action(
      answer(
        async (team: string, name: string) => {
          return verifyDomain(await looking(admin), team, name)
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
        domainView(await rekeyDomain(by, team, name), admin.returnDomain),
      'secrets',
    ),
  )

  verb(
    'remove TEAM NAME',
    'Remove a domain. No more email can be sent from it. Emails already stored are kept',
  ).action(
    change(async (by, team: string, given: string) => {
      const { id, name } = await removeDomain(by, team, given)
      return { id, name, removed: true }
    }),
  )
}

const lists: Verbs = ({ list, admin }) => {
  list('List the domains of a team, their DNS records and ramp-ups', async (database, team) => {
    const domains = await domainsOfTeam(database, team)
    const ramps = await shownRamps(
      database,
      domains.map(({ name }) => name),
    )
    return domains.map((row) => ({
      ...domainView(row, admin.returnDomain),
      ramp: ramps.get(row.name) ?? null,
    }))
  })
}

const switches: Verbs = ({ verb, change, admin }) => {
  verb(
    'return-path TEAM NAME on|off',
    'Return bounces to bounces.NAME (on) or to RETURN_PATH_DOMAIN (off)',
    SWITCH,
  )
    .addHelpText(
      'after',
      '\nbounces.NAME must be a CNAME record with the value of RETURN_PATH_DOMAIN, which needs MX and SPF records.\nThe relay must accept bounces.NAME as an envelope sender. If it doesn’t, RETURN_PATH_DOMAIN is used.\nExits with code 1 if a DNS record is missing.',
    )
    .action(
      answer(async (team: string, name: string, on: boolean) =>
        domainView(await setReturnPath(await looking(admin), team, { name, on }), admin.returnDomain),
      ),
    )

  verb(
    'ed25519 TEAM NAME on|off',
    'Also sign the domain’s emails with an Ed25519 key. Prints the DNS records to publish',
    SWITCH,
  ).action(
    change(
      async (by, team: string, name: string, on: boolean) =>
        domainView(await setEd25519(by, team, { name, on }), admin.returnDomain),
      'secrets',
    ),
  )
}
