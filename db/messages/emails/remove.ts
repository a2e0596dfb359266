/**
 * Deletes emails with their events and their dead letters and refunds the quota, in the caller's transaction. A
 * worker finds no row for the job and drops it. DECISIONS: Quota.
 */

import { type Caller, record } from '../../accounts/audit/record.ts'
import { lockAccount, refundQuota } from '../../accounts/teams/limits.ts'
import { requireTeam } from '../../accounts/teams/view.ts'
import { queuesOf } from '../../channels/channels.sql.ts'
import { EMAIL } from '../../channels/email.sql.ts'
import { requestError } from '../../errors.ts'
import type { Tx } from '../../postgres/pool.ts'
import { deleteFailedJobs } from '../../queue/dead-letters.sql.ts'
import { TEXTS } from '../texts.ts'
import { deleteEmailsById } from './delete.sql.ts'

/** Deletes the emails that exist. @returns those emails. */
export async function removeRows(tx: Tx, teamId: string, ids: readonly string[]) {
  const account = await lockAccount(tx, teamId)
  const deleted = await deleteEmailsById(tx, teamId, ids)
  await refundQuota(tx, teamId, account, { quota: 'emails', deleted })
  await deleteFailedJobs(tx, queuesOf(EMAIL), ids)
  return deleted
}

/** Deletes the emails that exist. @returns how many. */
export const removeEmails = async ({ tx }: { tx: Tx }, teamId: string, ids: readonly string[]) =>
  (await removeRows(tx, teamId, ids)).length

/** Deletes one email, and records it in the audit log. @throws RequestError not_found. */
export async function removeEmail(by: Caller, teamId: string, id: string): Promise<{ created_at: string }> {
  const { tx } = by
  await requireTeam(tx, teamId)
  const [deleted] = await removeRows(tx, teamId, [id])
  if (!deleted) throw requestError('not_found', TEXTS.noEmail, { id })
  await record(by, { team_id: teamId, action: 'email.delete', subject: id })
  return deleted
}
