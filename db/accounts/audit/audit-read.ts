/**
 * The trace of reading: an operator on the dashboard who reads what a team's messages and lists hold, without being its
 * member. The CLI's reading leaves none: who runs it has the database. Must not be called for what changes anything.
 */
import { type By, record } from './record.ts'

/** Notes who reads what a team holds, unless it is their own. @param member whether it is. */
export async function auditRead(
  by: By,
  { id, member }: { id: string; member: boolean },
  read: { action: string; subject: string },
): Promise<void> {
  if (!member) await record(by, { team_id: id, ...read })
}
