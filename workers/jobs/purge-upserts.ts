/**
 * Deletes bulk upserts an hour after the client received or missed the response, unfinished ones together with their
 * jobs. Imports are kept for a week, drafts for a day, background jobs for a month, and half-stored attachments for
 * half an hour.
 */

import { deleteUpserts } from '../../db/audience/contacts/upserts.sql.ts'
import { deleteImports } from '../../db/audience/import/imports.sql.ts'
import { deleteAbandonedFiles } from '../../db/content/files/files.sql.ts'
import { deleteBackgroundJobs } from '../../db/maintenance/background-jobs/background-jobs.sql.ts'
import { serviceTime } from '../../db/postgres/time.sql.ts'
import { JOB_RETENTION_S } from '../../db/queue/jobs.ts'
import type { WorkerDeps } from '../deps.ts'

const UPSERTS_KEPT_MS = 3_600_000
const IMPORTS_KEPT_MS = 7 * 24 * UPSERTS_KEPT_MS
const DRAFTS_KEPT_MS = 24 * UPSERTS_KEPT_MS

export async function purgeUpserts({ database, log }: WorkerDeps): Promise<void> {
  const now = (await serviceTime(database)).getTime()
  const deleted = await deleteUpserts(database, {
    finishedBefore: new Date(now - UPSERTS_KEPT_MS),
    createdBefore: new Date(now - JOB_RETENTION_S * 1_000),
  })
  await deleteAbandonedFiles(database, new Date(now - UPSERTS_KEPT_MS / 2))
  await deleteImports(database, {
    before: new Date(now - IMPORTS_KEPT_MS),
    draftsBefore: new Date(now - DRAFTS_KEPT_MS),
  })
  await deleteBackgroundJobs(database, new Date(now - JOB_RETENTION_S * 1_000))
  if (deleted > 0) log.info({ deleted }, 'deleted expired bulk upserts')
}
