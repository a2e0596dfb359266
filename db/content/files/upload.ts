/**
 * Stores an uploaded file in pieces, never completely in memory. Its storage is counted once, under the account's lock.
 * A rejected or interrupted upload leaves nothing.
 */

import { createHash } from 'node:crypto'
import { lockAccount, saveAccount, storageError } from '../../accounts/teams/limits.ts'
import { LimitReached } from '../../accounts/teams/rate-limit.ts'
import { RequestError, Unavailable } from '../../errors.ts'
import type { Database, Tx } from '../../postgres/pool.ts'
import { idNow } from '../../process/ids.ts'
import { TEXTS } from '../texts.ts'
import {
  completeLoading,
  dropLoading,
  insertChunks,
  insertUnknown,
  insertUpload,
  type LoadingFile,
  publishFiles,
  type Upload,
  usedFiles,
} from './files.sql.ts'

type Uploading = {
  filename: string
  content_type: string
  days: number
  /** Reads the upload, and passes its chunks to `take` in order. */
  read(take: (chunk: Buffer) => Promise<void>): Promise<void>
}

/** Publishes the file, unless the team already has the same bytes. @throws RequestError quota_exceeded */
async function publish(tx: Tx, teamId: string, { id, sha256, size }: LoadingFile): Promise<void> {
  const account = await lockAccount(tx, teamId)
  if ((await usedFiles(tx, [{ team_id: teamId, sha256 }])).length > 0) return
  const refusal = storageError(account, size)
  if (refusal) throw new LimitReached(account, refusal)
  if ((await publishFiles(tx, [{ team_id: teamId, id }])) !== 1)
    throw new Unavailable('upload_timeout', TEXTS.uploadTooSlow, 1)
  account.used.storage += size
  await saveAccount(tx, teamId, account)
}

/** @throws RequestError bad_request for an empty body, quota_exceeded, and errors of `read` */
export async function upload(
  database: Database,
  teamId: string,
  { filename, content_type, days, read }: Uploading,
): Promise<Upload> {
  const file_id = idNow()
  const hash = createHash('sha256')
  let size = 0
  let part = 0
  try {
    await read(async (bytes) => {
      if (part === 0) await insertUnknown(database, teamId, file_id)
      hash.update(bytes)
      size += bytes.length
      await insertChunks(database, teamId, [{ file_id, part, bytes }])
      part += 1
    })
    if (size === 0) throw new RequestError('bad_request', TEXTS.emptyBody)
    const file = { id: file_id, sha256: hash.digest('hex'), size }
    await completeLoading(database, teamId, file)
    const row = { id: idNow(), filename, content_type, size, sha256: file.sha256 }
    return await database.transaction(async (tx) => {
      await publish(tx, teamId, file)
      return insertUpload(tx, teamId, row, days)
    })
  } finally {
    // If this fails, the file is collected within the hour.
    if (part > 0) await dropLoading(database, teamId, [file_id]).catch(() => {})
  }
}
