/**
 * Records in the audit log when an operator who isn't a member reads a team's messages or lists on the
 * dashboard. Reads with the CLI aren't recorded. For reads only.
 */
import { type By, record } from './record.ts'

/** Records who reads a team's data, unless it is a member. @param member true for a member. */
export async function auditRead(
  by: By,
  { id, member }: { id: string; member: boolean },
  read: { action: string; subject: string },
): Promise<void> {
  if (!member) await record(by, { team_id: id, ...read })
}
