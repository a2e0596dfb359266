/**
 * Checks broadcast emails just before they are sent. Emails of a paused broadcast wait, and the rest respects its
 * rate limit. If the broadcast or the contact no longer allows an email, the email is deleted, the quota is refunded
 * and the skip is recorded, in one transaction.
 */

import type { RampPlace } from '../../accounts/domains/ramps.sql.ts'
import { lockAccount, refundQuota } from '../../accounts/teams/limits.ts'
import type { Database } from '../../postgres/pool.ts'
import { serviceTime } from '../../postgres/time.sql.ts'
import {
  deleteWaitingEmails,
  type EmailState,
  reservePlaces,
  statesOf,
  unansweredAmong,
} from './consent.sql.ts'
import { reserveRampPlaces } from './ramp.ts'
import { insertSkips } from './skips.sql.ts'

/** How often an email of a paused broadcast checks again, in seconds. A resume makes it due immediately. */
const PAUSED_WAIT = 60

/** An email about to be sent. `tried_since`: set if there was an attempt, so that it already counts in a ramp. */
type Leaving = { team_id: string; id: string; tried_since?: string | null }

/**
 * The result of the check. A `counted` email may be sent, and counts towards the daily limit of its domain. `ramp` is
 * the domain whose daily limit is reached. An email without a response may have arrived, so it fails and needs manual
 * action.
 */
export type SendCheck =
  | 'go'
  | 'gone'
  | { counted: RampPlace }
  | { wait_seconds: number; until_resumed?: true; ramp?: string }
  | { given_up: string }

/** Returns the result for each of these emails, by ID. */
export async function checkBeforeSend(
  database: Database,
  leaving: readonly Leaving[],
): Promise<ReadonlyMap<string, SendCheck>> {
  if (leaving.length === 0) return new Map()
  const refs = leaving.map(({ team_id, id }) => ({ team_id, email_id: id }))
  const emails = await statesOf(database, refs)
  const unanswered = await unansweredAmong(
    database,
    emails.flatMap(({ team_id, id, reason }) => (reason === null ? [] : [{ team_id, email_id: id }])),
  )
  const checks = new Map<string, SendCheck>(
    emails.map((email) => [email.id, toCheck(email, unanswered.has(email.id))]),
  )
  const among = (check: SendCheck) => emails.filter(({ id }) => checks.get(id) === check)
  await withdraw(database, among('gone'))
  // An email that waits for the rate of its broadcast doesn't count towards a daily limit yet.
  for (const [id, check] of await spread(database, among('go'))) checks.set(id, check)
  const tried = new Set(leaving.flatMap(({ id, tried_since }) => (tried_since ? [id] : [])))
  const fresh = among('go').filter(({ id }) => !tried.has(id))
  for (const [id, check] of await rampUp(database, fresh)) checks.set(id, check)
  return checks
}

const mayHaveArrived = (reason: string): string =>
  `an attempt got no response, so the email may have arrived and isn't sent again: ${reason}`

function toCheck({ reason, state }: EmailState, isUnanswered: boolean): SendCheck {
  if (reason !== null) return isUnanswered ? { given_up: mayHaveArrived(reason) } : 'gone'
  return state === 'paused' ? { wait_seconds: PAUSED_WAIT, until_resumed: true } : 'go'
}

async function withdraw(database: Database, emails: readonly EmailState[]): Promise<void> {
  for (const [teamId, own] of Map.groupBy(emails, ({ team_id }) => team_id)) {
    const reasons = new Map(own.map(({ id, reason }) => [id, reason ?? 'cancelled']))
    await database.transaction(async (tx) => {
      const account = await lockAccount(tx, teamId)
      const gone = await deleteWaitingEmails(tx, teamId, [...reasons.keys()])
      await refundQuota(tx, teamId, account, { quota: 'emails', deleted: gone })
      const skips = gone.flatMap(({ id, broadcast_id, contact_id, email }) => {
        if (broadcast_id === null || contact_id === null) return []
        const reason = reasons.get(id) ?? 'cancelled'
        return [{ team_id: teamId, broadcast_id, contact_id, email, reason, detail: '' }]
      })
      await insertSkips(tx, skips, await serviceTime(tx))
    })
  }
}

/** Returns the results for emails of domains that are ramping up: they count today, or wait until the next day. */
async function rampUp(database: Database, emails: readonly EmailState[]): Promise<Map<string, SendCheck>> {
  const checks = new Map<string, SendCheck>()
  for (const [name, own] of Map.groupBy(emails, ({ ramped }) => ramped)) {
    if (name === null) continue
    const places = await reserveRampPlaces(database, name, own.length)
    if (places === null) continue
    const { granted, day, wait_seconds } = places
    for (const { id } of own.slice(0, granted)) checks.set(id, { counted: { name, day } })
    for (const { id } of own.slice(granted)) checks.set(id, { wait_seconds, ramp: name })
  }
  return checks
}

/** Returns the emails that must wait because their broadcast has a rate limit. */
async function spread(database: Database, emails: readonly EmailState[]): Promise<Map<string, SendCheck>> {
  const waits = new Map<string, SendCheck>()
  const rated = emails.filter(({ rate_per_minute }) => rate_per_minute !== null)
  for (const [broadcast_id, own] of Map.groupBy(rated, (each) => each.broadcast_id)) {
    const [first] = own
    if (!first) continue
    const places = await reservePlaces(database, { team_id: first.team_id, broadcast_id, count: own.length })
    if (!places) continue
    for (const [index, { id }] of own.slice(places.granted).entries()) {
      waits.set(id, { wait_seconds: places.wait_seconds + index * places.interval_seconds })
    }
  }
  return waits
}
