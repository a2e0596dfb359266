/**
 * Deletes an email with its events and frees its place in the allowance, in the caller's transaction.
 * Promises: the counter still equals a recount afterwards. Its job is left to the worker, which finds no row.
 * Contract §8, send quota 5; decisions: quota counts stored emails.
 */
import { Refusal } from '../errors.ts'
import type { Tx } from '../postgres/pool.ts'
import { lockAccount, saveAccount } from '../teams/limits.ts'
import { teamOrRefusal } from '../teams/view.ts'
import { deleteEmailRow } from './emails.sql.ts'

/** @throws Refusal not_found. */
export async function removeEmail(
  { tx }: { tx: Tx },
  teamId: string,
  id: string,
): Promise<{ created_at: string }> {
  await teamOrRefusal(tx, teamId)
  const account = await lockAccount(tx, teamId)
  const deleted = await deleteEmailRow(tx, teamId, id)
  if (!deleted) throw new Refusal('not_found', `there is no email ${id} in this team`)
  const created = new Date(deleted.created_at)
  if (created >= account.period.start && created < account.period.end) {
    account.used.emails = Math.max(0, account.used.emails - 1)
    await saveAccount(tx, teamId, account)
  }
  return deleted
}
