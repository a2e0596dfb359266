/** Verbs of `suppression`: a team's suppressed addresses. */

import { requireTeam } from '../accounts/teams/view.ts'
import { CAUSES, type Cause } from '../audience/contacts/effect.ts'
import {
  countSuppressed,
  type SuppressionFilter,
  suppressedAddresses,
} from '../audience/suppressions/addresses.sql.ts'
import { ADDED_CAUSES, addSuppression } from '../audience/suppressions/by-hand.ts'
import { liftOne, parseReason, shownSuppression, showSuppression } from '../audience/suppressions/lift.ts'
import { findSuppressed } from '../audience/suppressions/suppressed.ts'
import { RequestError } from '../errors.ts'
import { domainToAscii } from '../validation/address.ts'
import type { Admin } from './context.ts'
import { atMost, instant, oneOf, only, words } from './input.ts'
import { answer, type Noun, type Verbs } from './noun.ts'
import { TEXTS } from './texts.ts'

const MAX_LISTED = 10_000

type Filter = Pick<SuppressionFilter, 'cause' | 'response' | 'domain' | 'since' | 'until'>
type Lift = Filter & { reason: string; dryRun?: boolean }

/** A domain in any form. @throws RequestError bad_request. */
function domain(text: string): string {
  const ascii = domainToAscii(text.trim())
  if (ascii !== null) return ascii
  throw new RequestError('bad_request', TEXTS.notDomain)
}

const withFilter = (command: ReturnType<Noun['verb']>) =>
  command
    .option('--cause <cause>', ...only(CAUSES))
    .option('--response <text>', 'only if the response contains this text', words)
    .option('--domain <domain>', 'only addresses of this domain', domain)
    .option('--since <time>', 'only addresses suppressed at this time or later', instant)
    .option('--until <time>', 'only addresses suppressed at this time or earlier', instant)

/** The filter in the audit log. */
const filterWords = (filter: Filter): string =>
  Object.entries(filter)
    .map(([name, value]) => `${name}: ${value instanceof Date ? value.toISOString() : value}`)
    .join(', ')

async function liftOneAddress(admin: Admin, team: string, identity: string, { reason, dryRun }: Lift) {
  const secrets = await admin.secrets()
  return admin.transaction(async (by) => {
    await requireTeam(by.tx, team)
    if (!dryRun) return { lifted: await liftOne({ ...by, secrets }, team, identity, reason) }
    const found = await findSuppressed(by.tx, secrets, team, [identity])
    return { lifted: 0, would_lift: found.size }
  })
}

/** Lifts all matching suppressions in a background job. */
async function liftAll(admin: Admin, team: string, { reason, dryRun, ...filter }: Lift) {
  const database = await admin.database()
  await requireTeam(database, team)
  const count = await countSuppressed(database, team, filter, null)
  if (dryRun) return { lifted: 0, would_lift: count }
  if (count === 0) return { lifted: 0 }
  const { since, until, ...rest } = filter
  const times = { since: since?.toISOString(), until: until?.toISOString() }
  const given = { filter: { ...rest, ...times }, reason, words: filterWords(filter), most: count }
  const wanted = { kind: 'suppression.lift' as const, team_id: team, given, total: count }
  return admin.runBackgroundJob<{ lifted: number }>(wanted, await admin.secrets())
}

export const verbs: Verbs = (noun) => {
  const { verb, look, change, ofTeam, admin } = noun
  withFilter(verb('list TEAM', 'List the suppressed addresses of a team, newest first'))
    .option('--limit <n>', ...atMost(MAX_LISTED))
    .action(
      ofTeam(async (database, team, filter: Filter & { limit: number }) =>
        (await suppressedAddresses(database, team, filter)).map(shownSuppression),
      ),
    )

  verb('show TEAM EMAIL', 'Show why an address is suppressed. Exits with code 1 if it isn’t').action(
    look(async (database, team: string, identity: string) => {
      await requireTeam(database, team)
      return showSuppression(database, team, identity)
    }),
  )

  verb('add TEAM EMAIL', 'Suppress an address, whether or not it is a contact', {
    EMAIL: ['the email address'],
  })
    .requiredOption('--cause <cause>', `why: ${ADDED_CAUSES.join(', ')}`, oneOf(ADDED_CAUSES))
    .option('--reason <text>', 'the reason, shown instead of a server response')
    .action(
      change(async (by, team: string, email: string, how: { cause: Cause; reason?: string }) => {
        await requireTeam(by.tx, team)
        return addSuppression(by, team, { email, ...how })
      }),
    )

  withFilter(verb('lift TEAM [EMAIL]', 'Remove the suppression of an address, or of all that match a filter'))
    .requiredOption('--reason <text>', 'the reason, for the audit log')
    .option('--dry-run', 'only count the addresses')
    .action(
      answer(
        async (team: string, identity: string | undefined, { reason, dryRun = false, ...filter }: Lift) => {
          const how = { reason: parseReason(reason), dryRun }
          const filtered = Object.values(filter).some((value) => value !== undefined)
          if (identity !== undefined && filtered) throw new RequestError('bad_request', TEXTS.addressOrFilter)
          if (identity !== undefined) return liftOneAddress(admin, team, identity, how)
          if (!filtered) throw new RequestError('bad_request', TEXTS.noAddressOrFilter)
          return liftAll(admin, team, { ...filter, ...how })
        },
      ),
    )
}
