/** Records in the audit log when an operator who isn't a member reads a team's messages or lists on the dashboard. */
import { type By, record } from './record.ts'

/**
 * @param id of the team, or null for all. @param member true for a member, whose reads aren't recorded. Neither are
 * reads with the CLI.
 */
export async function auditRead(
  by: By,
  { id, member }: { id: string | null; member: boolean },
  read: { action: string; subject: string },
): Promise<void> {
  if (!member) await record(by, { team_id: id, ...read })
}
