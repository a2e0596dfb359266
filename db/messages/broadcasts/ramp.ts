/** Ramps up a sending domain: limits its broadcast emails per day. DECISIONS: Ramp-up. */
import { type By, record } from '../../accounts/audit/record.ts'
import { requireDomain } from '../../accounts/domains/add.ts'
import { HISTORY_EMAILS, type RampStart, rampToday, TOP, USUAL_RAMP } from '../../accounts/domains/ramp.ts'
import {
  countHistory,
  decideRamp,
  lockRamp,
  type RampRow,
  readRamp,
  readRamps,
  saveRamp,
  setRamp,
} from '../../accounts/domains/ramps.sql.ts'
import { BROADCAST_QUEUES } from '../../channels/channels.sql.ts'
import type { Database, Tx } from '../../postgres/pool.ts'
import { bringForward } from '../../queue/jobs.sql.ts'
import { wakeOnCommit } from '../../queue/wake.ts'
import { waitingOfDomain } from '../emails/waiting.sql.ts'

/** Starts the ramp of a domain without history, if ramps are enabled and no one has set or disabled it. */
export async function startRamp(tx: Tx, name: string, start: RampStart | null): Promise<void> {
  if (start === null || (await readRamp(tx, name)) !== null) return
  const isNew = (await countHistory(tx, name)) < HISTORY_EMAILS
  await decideRamp(tx, { name, state: isNew && start.limit < TOP ? 'on' : 'off', ...start })
}

/**
 * Reserves up to `count` emails. Only the ramp is locked, in its own transaction.
 * @returns how many can be sent today, the day, and the seconds until the next one.
 */
export const reserveRampPlaces = (
  database: Database,
  name: string,
  count: number,
): Promise<{ granted: number; day: string; wait_seconds: number } | null> =>
  database.transaction(async (tx) => {
    const held = await lockRamp(tx, name)
    if (held === null) return null
    const { limit, used } = rampToday(held)
    if (limit >= TOP) {
      await saveRamp(tx, { name, state: 'ended', limit, used: 0 })
      return null
    }
    const granted = Math.max(0, Math.min(count, limit - used))
    if (granted > 0 || !held.is_today) await saveRamp(tx, { name, state: 'on', limit, used: used + granted })
    return { granted, day: held.today, wait_seconds: held.seconds_left + 1 }
  })

/** A domain's ramp today, or null without one. */
export type ShownRamp = Pick<RampRow, 'limit' | 'used' | 'factor'>

/** Null once the limit has reached the top, which ends the ramp. */
function shown(row: RampRow): ShownRamp | null {
  const ramp = rampToday(row)
  return row.state === 'on' && ramp.limit < TOP ? { ...ramp, factor: row.factor } : null
}

/** Returns today's ramps of these domain names. */
export async function shownRamps(tx: Tx, names: readonly string[]): Promise<ReadonlyMap<string, ShownRamp>> {
  const ramps = await readRamps(tx, names)
  return new Map(
    ramps.flatMap((row) => {
      const ramp = shown(row)
      return ramp === null ? [] : [[row.name, ramp] as const]
    }),
  )
}

export const shownRamp = async (tx: Tx, name: string): Promise<ShownRamp | null> =>
  (await shownRamps(tx, [name])).get(name) ?? null

/**
 * Sets today's limit of a domain name, or disables its ramp, regardless of DOMAIN_RAMP. @throws RequestError
 * not_found.
 */
export async function changeRamp(by: By, teamId: string, given: string, limit: number | null) {
  const { tx } = by
  const domain = await requireDomain(tx, teamId, given)
  const { name } = domain
  const state = limit === null ? 'off' : limit < TOP ? 'on' : 'ended'
  await setRamp(tx, { name, state, limit: limit ?? USUAL_RAMP.limit, factor: USUAL_RAMP.factor })
  for (const { job } of BROADCAST_QUEUES) {
    await bringForward(tx, job, waitingOfDomain(name))
    await wakeOnCommit(tx, job)
  }
  const detail = limit === null ? 'off' : String(limit)
  await record(by, { team_id: teamId, action: 'domain.ramp', subject: name, detail })
  return domain
}
