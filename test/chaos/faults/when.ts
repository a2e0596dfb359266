/**
 * Emails scheduled for the same time. Around that time workers and the database are killed, and a third of
 * the emails is cancelled. No email may be early, repeated or missing, or be both cancelled and sent.
 * DECISIONS: Scheduled messages.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { TestTeam } from '../../support/service.ts'
import { emailsOf, inFlight, settle } from '../account.ts'
import { type Fault, inTurn, meanwhile } from '../fault.ts'
import { attempt, type Load, sendBatches } from '../load.ts'
import { type World, within } from '../world.ts'
import { crash } from './database.ts'

/** The time for accepting all emails, per email and in total at least. */
const LEAD_MS = { each: 5, least: 10_000 }
/** Half of the time over which cancellations are spread around the scheduled time, per email. */
const AROUND_MS = 3
const CLIENTS = 8

/** The results of cancellations, by id. */
type Cancelled = { gone: Set<string>; refused: Set<string>; wrong: string[] }

/** Cancels an email, with repeats until the final response. */
async function insistOnCancel(world: World, team: TestTeam, id: string, done: Cancelled): Promise<void> {
  for (let isRepeated = false; !world.closed.aborted; isRepeated = true) {
    const { status } = await attempt(world, team, {}, `/v1/emails/${id}/cancel`)
    // The response to an earlier attempt may be lost.
    if (status === 200 || (status === 404 && isRepeated)) return void done.gone.add(id)
    if (status === 409) return void done.refused.add(id)
    if (status >= 400 && status < 500) return void done.wrong.push(id)
    await sleep(100)
  }
}

/** The scheduled time, and when cancelling starts, in milliseconds since 1970. */
type Times = { moment: number; from: number }

/** Cancels these emails, spread evenly around the scheduled time. */
async function cancelAround(world: World, team: TestTeam, ids: readonly string[], { moment, from }: Times) {
  const done: Cancelled = { gone: new Set(), refused: new Set(), wrong: [] }
  let next = 0
  const client = async (): Promise<void> => {
    for (let at = next++; at < ids.length; at = next++) {
      const turn = from + (at / ids.length) * 2 * (moment - from)
      await sleep(Math.max(0, turn - Date.now()))
      await insistOnCancel(world, team, ids[at] ?? '', done)
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, client))
  return done
}

/**
 * Schedules emails, cancels every third one around the scheduled time, and waits until most of the others
 * have arrived.
 */
async function scheduleAndCancel(world: World, team: TestTeam, count: number, times: Times) {
  const scheduled_at = new Date(times.moment).toISOString()
  const load = await sendBatches(world, team, count, { scheduled_at })
  const acceptedInTime = Date.now() < times.from
  const ids = [...load.accepted.values()]
  const cancelled = await cancelAround(
    world,
    team,
    ids.filter((_, nth) => nth % 3 === 0),
    times,
  )
  const { copies } = world.relay
  const left = ids.filter((id) => !cancelled.gone.has(id))
  await within(600, () => left.filter((id) => copies.has(id)).length >= left.length * 0.9)
  return { load, cancelled, acceptedInTime }
}

/** Returns the accepted emails that weren't cancelled. */
const without = ({ accepted, wrong }: Load, { gone }: Cancelled): Load => ({
  accepted: new Map([...accepted].filter(([, id]) => !gone.has(id))),
  wrong,
})

export const whenFaults: readonly Fault[] = [
  {
    id: 'J/when',
    words:
      'emails scheduled for one moment, a third of them cancelled around it: kill -9 of a worker every 3 s, and a crash of the database at that moment',
    load: '20,000 in batches',
    own_server: true,
    async run(world, scale) {
      const team = await world.team()
      const count = 20_000 * scale
      const from = Date.now() + LEAD_MS.least + count * LEAD_MS.each
      const moment = from + count * AROUND_MS
      let crashes = 0
      const work = scheduleAndCancel(world, team, count, { moment, from })
      const { result, strikes } = await meanwhile(work, 3_000, async (nth) => {
        if (crashes === 0 && Date.now() > moment) {
          crashes += 1
          await crash(world).catch(() => {})
        }
        // One worker always stays up, even if the other starts slowly.
        return world.workers.every((worker) => worker.isUp()) && inTurn(world.workers, nth).signal('SIGKILL')
      })
      const { load, cancelled, acceptedInTime } = result
      const { copies } = world.relay
      const left = without(load, cancelled)
      const account = await settle(world, left, { seconds: 300 })
      const strange = Math.abs((await emailsOf(world, team)) - left.accepted.size)
      const early = [...copies.values()].flat().filter(({ began }) => began < moment).length
      const both = [...cancelled.gone].filter((id) => copies.has(id)).length
      const happened =
        acceptedInTime && crashes === 1 && cancelled.gone.size > 0 && cancelled.refused.size > 0
      return {
        ...account,
        over: account.over + strange + early + both + cancelled.wrong.length + (happened ? 0 : 1),
        note: `${early} early; ${cancelled.gone.size} cancelled, ${both} of them arrived, ${cancelled.refused.size} too late to cancel; ${strikes} kills, ${crashes} crash`,
        // The crash affects the emails that both workers had in flight.
        allowed: inFlight(strikes + world.workers.length),
        limit: 300,
      }
    },
  },
]
