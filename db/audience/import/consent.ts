/**
 * Recognizes consent columns in exports of other services, and whether a cell means yes or no. The test lists
 * the services. Anything that may mean "no" is never read as yes. Pure.
 */

/** What becomes of those who said no. `ignore`: the column is not looked at. */
export const AFTER_NO = ['unsubscribed', 'suppressed', 'ignore'] as const
export type AfterNo = (typeof AFTER_NO)[number]

const bare = (name: string): string => name.toLowerCase().replace(/[^\p{L}]/gu, '')
const listed = (words: string): ReadonlySet<string> => new Set(words.split(/\s+/))

/** Columns whose cells name a state. */
const STATES = listed(
  'status subscriptionstatus subscriberstatus emailstatus contactstatus optinstatus marketingstatus emailmarketing emailmarketingstatus',
)
/** Columns whose "true" is a yes. */
const FOR = listed(
  'subscribed issubscribed optin optedin doubleoptin consent emailconsent marketingconsent acceptsmarketing acceptsemailmarketing',
)
/** Columns whose "true", or time, is a no. */
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
/** In some exports a double opt-in's "no" is 2. */
const FALSE = listed('no n false f off 0 2')
const A_TIME = /^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}/
const FAILURE_CODE = /^[45]\.\d+\.\d+$/

/** Whether a column of this name says who consented. */
export const isConsent = (name: string): boolean =>
  [STATES, FOR, AGAINST].some((names) => names.has(bare(name)))

/** Whether a cell says yes or no. Null if neither can be read in it. */
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
