/** Processes whose clocks are wrong while the database's is right. */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { subscribeTeam } from '../../../db/accounts/teams/subscribe.ts'
import { anEmail } from '../../support/service.ts'
import { counted, emailsOf, settle } from '../account.ts'
import type { Fault } from '../fault.ts'
import { attempt, type Load, send, together } from '../load.ts'
import type { Start, World } from '../world.ts'

const PRELOAD = join(import.meta.dirname, '../preload/clock.ts')

const withClock = (seconds: number): Start => ({
  argv: ['--import', PRELOAD],
  env: { CHAOS_CLOCK_MS: String(seconds * 1_000) },
})

/** Sends more than the quota and the rate allow. @returns the number of rows above them. */
async function wantTooMuch(world: World): Promise<number> {
  const quota = await world.team({ email_limit: 100 })
  await Promise.all(Array.from({ length: 200 }, () => attempt(world, quota, anEmail())))
  const rate = await world.team({ rate: 10 })
  const started = performance.now()
  const client = async (): Promise<void> => {
    while (performance.now() < started + 4_000) await attempt(world, rate, anEmail())
  }
  await Promise.all([1, 2, 3, 4].map(client))
  const allowed = Math.floor(50 + (10 * (performance.now() - started)) / 1_000)
  const [ofQuota, ofRate] = [await emailsOf(world, quota), await emailsOf(world, rate)]
  const tooFew = Math.max(0, 80 - ofRate)
  return Math.abs(ofQuota - 100) + Math.max(0, ofRate - allowed) + tooFew
}

/** Counts rows and events outside the real time, or before their causes. */
async function outOfTime({ sql }: World, began: Date, load: Load): Promise<number> {
  const [row] = await sql<{ wrong: string }>(
    `select count(*) filter (where e.created_at < $1 or e.created_at > clock_timestamp()
        or v.occurred_at < e.created_at - interval '1 second'
        or v.occurred_at > clock_timestamp() + interval '1 second') as wrong
      from emails e left join email_events v on v.team_id = e.team_id and v.email_id = e.id
      where e.id = any($2)`,
    [began, [...load.accepted.values()]],
  )
  return Number(row?.wrong)
}

/** One API and one worker have clocks that are ahead, and the others have clocks that are behind. */
const wrongBy = (seconds: number, words: string): Fault => ({
  id: `F/clock${seconds}`,
  words: `clocks of processes ${words} ahead and behind, and a relay that is down for 10 s`,
  load: '600 singles, and more than a quota of 100 and a rate limit of 10/s allow',
  world: {
    apis: [withClock(seconds), withClock(-seconds)],
    workers: [withClock(seconds), withClock(-seconds)],
  },
  async run(world, scale) {
    const team = await world.team()
    const [{ now } = { now: new Date() }] = await world.sql<{ now: Date }>('select clock_timestamp() as now')
    const over = await wantTooMuch(world)
    const first = await send(world, [team], 300 * scale)
    await settle(world, first)
    world.toRelay.weather('refuse')
    world.toRelay.cut()
    const second = await send(world, [team], 300 * scale)
    await sleep(10_000)
    world.toRelay.weather('calm')
    const ended = performance.now()
    const load = together(first, second)
    const account = await settle(world, load, { ended })
    const late = await outOfTime(world, now, load)
    return { ...account, over: account.over + over + late, note: `${late} wrong times`, limit: 30 }
  },
})

/** A team's period ends, and the next one starts, during the test. */
const edge: Fault = {
  id: 'B6',
  words: 'a period that ends under load above its quota, with clocks 10 s ahead and behind',
  load: 'quota 200, 8 clients for 16 s',
  world: { apis: [withClock(10), withClock(-10)] },
  async run(world) {
    const team = await world.team({ email_limit: 200 })
    // The period ends in 8 s by the database's clock, and the next one has the same length.
    const [{ now } = { now: new Date() }] = await world.sql<{ now: Date }>('select clock_timestamp() as now')
    const period = { start: new Date(now.getTime() - 3_600_000), end: new Date(now.getTime() + 8_000) }
    await world.database.transaction((tx) =>
      subscribeTeam({ tx, now: new Date(), actor: null }, team.id, {
        plan: 'pro',
        email_limit: 200,
        period,
        send_rate_per_second: 100_000,
      }),
    )
    const begun = performance.now()
    const client = async (): Promise<void> => {
      while (performance.now() < begun + 16_000) await attempt(world, team, anEmail())
    }
    await Promise.all(Array.from({ length: 8 }, client))
    const [row] = await world.sql<{ before: string; after: string }>(
      `select count(*) filter (where created_at < $2) as before, count(*) filter (where created_at >= $2) as after
        from emails where team_id = $1`,
      [team.id, period.end],
    )
    const [before, after] = [Number(row?.before), Number(row?.after)]
    const over = Math.abs(before - 200) + Math.abs(after - 200)
    return counted(before + after, over, `${before} before its end, ${after} after it`)
  },
}

export const clockFaults: readonly Fault[] = [edge, wrongBy(10, '10 s'), wrongBy(600, '10 min')]
