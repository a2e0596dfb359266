/**
 * Emails that are put back without an attempt. The end of a pause, a higher daily limit and a cancelled broadcast bring
 * waiting emails forward, but not those in flight at that moment. So the transaction that puts them back checks them
 * again. An email that counted towards a daily limit no longer counts.
 */
import { type RampPlace, returnPlaces } from '../../db/accounts/domains/ramps.sql.ts'
import { teamsNotPaused } from '../../db/accounts/teams/reputation.sql.ts'
import { statesOfBroadcasts } from '../../db/messages/broadcasts/consent.sql.ts'
import type { SendCheck } from '../../db/messages/broadcasts/consent.ts'
import type { Tx } from '../../db/postgres/pool.ts'
import { type Attempt, attemptsUnderWay } from '../../db/queue/jobs.sql.ts'
import type { JobName } from '../../db/queue/jobs.ts'

type Job = Attempt & { data: { team_id: string; email_id: string } }

/**
 * The reason is a pause of the team’s bulk email, a pause of the broadcast, its rate, or its domain’s daily limit. A
 * `counted` email doesn't wait, but counts towards that limit.
 */
type WaitsFor =
  | { kind: 'team' | 'broadcast' | 'rate' }
  | { kind: 'ramp'; name: string }
  | { kind: 'counted'; place: RampPlace }

function toWait(check: SendCheck): WaitsFor | null {
  if (typeof check !== 'object' || 'given_up' in check) return null
  if ('counted' in check) return { kind: 'counted', place: check.counted }
  if (check.ramp !== undefined) return { kind: 'ramp', name: check.ramp }
  return { kind: check.until_resumed ? 'broadcast' : 'rate' }
}

export function createWaits<J extends Job>(queue: JobName) {
  const waits = new WeakMap<J, WaitsFor>()
  const add = (job: J, waitsFor: WaitsFor | null): void => {
    if (waitsFor) waits.set(job, waitsFor)
  }
  return {
    add,

    /** Adds the wait of a broadcast email after its final check. */
    addChecked: (job: J, check: SendCheck): void => add(job, toWait(check)),

    /** Returns the jobs that no longer have to wait. */
    async over(tx: Tx, jobs: readonly J[]): Promise<ReadonlySet<J>> {
      const held = jobs.flatMap((job) => {
        const waitsFor = waits.get(job)
        return waitsFor ? [{ job, waitsFor }] : []
      })
      const teams = await unpausedTeams(tx, held)
      const states = await broadcastStates(tx, held)
      const ramps = await rampsWithRoom(tx, queue, held)
      const isOver = ({ job: { data }, waitsFor }: Held<J>): boolean => {
        if (waitsFor.kind === 'team') return teams.has(data.team_id)
        const state = states.get(data.email_id)
        if (waitsFor.kind === 'broadcast') return state !== undefined && state !== 'paused'
        return state === 'cancelled' || (waitsFor.kind === 'ramp' && ramps.has(waitsFor.name))
      }
      return new Set(held.filter(isOver).map(({ job }) => job))
    },
  }
}

type Held<J> = { job: J; waitsFor: WaitsFor }

async function unpausedTeams(tx: Tx, held: readonly Held<Job>[]): Promise<ReadonlySet<string>> {
  const own = held.filter(({ waitsFor }) => waitsFor.kind === 'team')
  return own.length === 0
    ? new Set()
    : teamsNotPaused(tx, [...new Set(own.map(({ job }) => job.data.team_id))])
}

async function broadcastStates(tx: Tx, held: readonly Held<Job>[]) {
  const own = held.filter(({ waitsFor }) => ['broadcast', 'rate', 'ramp'].includes(waitsFor.kind))
  return own.length === 0
    ? new Map()
    : statesOfBroadcasts(
        tx,
        own.map(({ job }) => job.data),
      )
}

/** Returns the places of emails that aren't sent. A repeated transaction finds them no longer claimed. */
async function rampsWithRoom(
  tx: Tx,
  queue: JobName,
  held: readonly Held<Job>[],
): Promise<ReadonlySet<string>> {
  const waiting = held.flatMap(({ waitsFor }) => (waitsFor.kind === 'ramp' ? [waitsFor.name] : []))
  const counted = held.flatMap(({ job, waitsFor }) =>
    waitsFor.kind === 'counted' ? [{ job, place: waitsFor.place }] : [],
  )
  if (waiting.length + counted.length === 0) return new Set()
  const claimed =
    counted.length === 0
      ? new Set()
      : await attemptsUnderWay(
          tx,
          queue,
          counted.map(({ job }) => job),
        )
  const unused = counted.flatMap(({ job, place }) => (claimed.has(job.id) ? [place] : []))
  return returnPlaces(tx, unused, [...new Set(waiting)])
}
