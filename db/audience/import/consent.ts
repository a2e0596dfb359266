/**
 * Recognizes consent columns in exports of other services, and whether a cell means yes or no. A value that may mean
 * "no" is never read as yes. Pure.
 */

/** The action for contacts without consent. `ignore` ignores the column. */
export const AFTER_NO = ['unsubscribed', 'suppressed', 'ignore'] as const
export type AfterNo = (typeof AFTER_NO)[number]

const bare = (name: string): string => name.toLowerCase().replace(/[^\p{L}]/gu, '')
const listed = (words: string): ReadonlySet<string> => new Set(words.split(/\s+/))

/** Columns whose cells contain a status. */
const STATES = listed(
  'status subscriptionstatus subscriberstatus emailstatus contactstatus optinstatus marketingstatus emailmarketing emailmarketingstatus',
)
/** Columns in which "true" means yes. */
const FOR = listed(
  'subscribed issubscribed optin optedin doubleoptin consent emailconsent marketingconsent acceptsmarketing acceptsemailmarketing',
)
/** Columns in which "true" or a time means no. */
const AGAINST = listed(
  `unsubscribed isunsubscribed unsubscribedat unsubtime unsubscribetime unsubscribedate unsubscribeddate optout optedout
  optouttime blocklisted blacklisted emailblocklisted emailblacklisted isblocklisted isblacklisted cleaned cleantime
  suppressed donotemail donotcontact globalunsubscribe globalunsubscribed globallyunsubscribed`,
)

const YES_STATES = listed(
  'subscribed active enabled confirmed verified optin optedin doubleoptin singleoptin',
)
const NO_STATES = listed(
  `unsubscribed blocklisted blacklisted blocked cleaned disabled inactive unconfirmed pending bounced complained
  complaint spam spamreport unreachable archived removed deleted optout optedout nonsubscribed notsubscribed
  neversubscribed transactional suppressed invalid unverified`,
)
const TRUE = listed('yes y true t x on 1')
/** Some exports use 2 for the "no" of a double opt-in. */
const FALSE = listed('no n false f off 0 2')
const A_TIME = /^\d{1,4}[-/.]\d{1,2}[-/.]\d/
/** Matches `5.1.1 user unknown`, but not the date `5.10.2026`. */
const FAILURE_CODE = /^[45]\.\d{1,3}\.\d{1,3}(?!\d)/

/** True if the name is that of a consent column. */
export const isConsent = (name: string): boolean =>
  [STATES, FOR, AGAINST].some((names) => names.has(bare(name)))

/** Returns the meaning of a cell, or null if it is unclear. */
export function consentIn(name: string, cell: string): 'yes' | 'no' | null {
  const value = cell.trim().toLowerCase()
  const isAgainst = AGAINST.has(bare(name))
  if (value === '') return FOR.has(bare(name)) ? 'no' : 'yes'
  if (NO_STATES.has(bare(value)) || FAILURE_CODE.test(value)) return 'no'
  if (YES_STATES.has(bare(value))) return 'yes'
  if (TRUE.has(value) || A_TIME.test(value)) return isAgainst ? 'no' : 'yes'
  if (FALSE.has(value)) return isAgainst ? 'yes' : 'no'
  return isAgainst ? 'no' : null
}
