/**
 * The trace of a look: an operator on the dashboard who reads what a team's messages and lists hold, without being its
 * member. The CLI's reading leaves none: who runs it has the database. Must not be called for what changes anything.
 */
import { type By, record } from './record.ts'

/** Notes a look into what a team holds. @param member whether the team is the looker's own: nothing is noted then. */
export async function noteLook(
  by: By,
  { id, member }: { id: string; member: boolean },
  look: { action: string; subject: string },
): Promise<void> {
  if (!member) await record(by, { team_id: id, ...look })
}
