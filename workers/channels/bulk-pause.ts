/** Makes batch items wait whose team's bulk email is paused (db/messages/bulk-pause.ts). */
import { teamsNotPaused } from '../../db/messages/emails/of-batch.sql.ts'
import type { OutgoingRow } from '../../db/messages/emails/outgoing.sql.ts'
import type { Tx } from '../../db/postgres/pool.ts'

/** How long an item waits, in seconds: resuming brings it forward. */
const BULK_PAUSED_WAIT_S = 600

type Job = { data: { team_id: string; email_id: string } }

export function createBulkPause() {
  /** Items that were found paused, until they are put back. */
  const paused = new Set<string>()
  return {
    /** How many seconds an email waits for the pause to end. Null if it doesn't. */
    waitOf(row: OutgoingRow): number | null {
      if (row.bulk_pause === null) return null
      paused.add(row.id)
      return BULK_PAUSED_WAIT_S
    },
    /** A resume brings waiting items forward, but not those in flight at that moment. */
    async mayGoAfterAll<J extends Job>(tx: Tx, jobs: readonly J[]): Promise<ReadonlySet<J>> {
      const waiting = jobs.filter(({ data }) => paused.delete(data.email_id))
      if (waiting.length === 0) return new Set()
      const teams = await teamsNotPaused(tx, [...new Set(waiting.map(({ data }) => data.team_id))])
      return new Set(waiting.filter(({ data }) => teams.has(data.team_id)))
    },
  }
}
