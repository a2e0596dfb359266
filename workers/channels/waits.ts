/**
 * Emails that wait until a pause or a daily limit ends. That brings waiting emails forward, but not those in flight at
 * that moment. So the transaction that puts them back checks them again.
 */
import { rampsWithRoom } from '../../db/accounts/domains/ramps.sql.ts'
import { emailsNotPaused } from '../../db/messages/broadcasts/consent.sql.ts'
import type { SendCheck } from '../../db/messages/broadcasts/consent.ts'
import { teamsNotPaused } from '../../db/messages/emails/of-batch.sql.ts'
import type { Tx } from '../../db/postgres/pool.ts'

type Job = { data: { team_id: string; email_id: string } }

/** The reason is a pause of the team’s bulk email, a pause of the broadcast, or its domain’s daily limit. */
type WaitsFor = { kind: 'team' } | { kind: 'broadcast' } | { kind: 'ramp'; name: string }

export function createWaits<J extends Job>() {
  const waits = new WeakMap<J, WaitsFor>()
  const add = (job: J, waitsFor: WaitsFor) => void waits.set(job, waitsFor)
  return {
    add,

    /** Adds the wait of a broadcast email after its final check. */
    addChecked(job: J, check: SendCheck): void {
      if (typeof check !== 'object' || 'given_up' in check) return
      if (check.until_resumed) add(job, { kind: 'broadcast' })
      if (check.ramp !== undefined) add(job, { kind: 'ramp', name: check.ramp })
    },

    /** Returns the jobs that no longer have to wait. */
    async over(tx: Tx, jobs: readonly J[]): Promise<ReadonlySet<J>> {
      const ofTeams: J[] = []
      const ofBroadcasts: J[] = []
      const ofRamps = new Map<J, string>()
      for (const job of jobs) {
        const waitsFor = waits.get(job)
        if (waitsFor?.kind === 'team') ofTeams.push(job)
        if (waitsFor?.kind === 'broadcast') ofBroadcasts.push(job)
        if (waitsFor?.kind === 'ramp') ofRamps.set(job, waitsFor.name)
      }
      const teams = await unlessEmpty(
        ofTeams,
        ({ data }) => data.team_id,
        (ids) => teamsNotPaused(tx, ids),
      )
      const emails = await unlessEmpty(
        ofBroadcasts,
        ({ data }) => data,
        (refs) => emailsNotPaused(tx, refs),
      )
      const ramps = await unlessEmpty(
        [...ofRamps.values()],
        (name) => name,
        (names) => rampsWithRoom(tx, names),
      )
      return new Set([
        ...ofTeams.filter(({ data }) => teams.has(data.team_id)),
        ...ofBroadcasts.filter(({ data }) => emails.has(data.email_id)),
        ...[...ofRamps].flatMap(([job, name]) => (ramps.has(name) ? [job] : [])),
      ])
    },
  }
}

/** Asks the database about the distinct keys of these items, if there are any. */
async function unlessEmpty<T, K>(
  items: readonly T[],
  keyOf: (item: T) => K,
  find: (keys: readonly K[]) => Promise<ReadonlySet<string>>,
): Promise<ReadonlySet<string>> {
  return items.length === 0 ? new Set() : find([...new Set(items.map(keyOf))])
}
