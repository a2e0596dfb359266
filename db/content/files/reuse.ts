/**
 * Reuses the attachments of an email for a copy or a requeue. They are kept for another day. Deleted ones are named,
 * so that nothing is sent without a file.
 */

import { type RequestError, requestError } from '../../errors.ts'
import type { Tx } from '../../postgres/pool.ts'
import { TEXTS } from '../texts.ts'
import { filesOfEmails, usedFiles } from './files.sql.ts'

/** For files whose bytes have been deleted. */
export const deletedFilesError = (files: readonly { filename: string }[]): RequestError => {
  const names = [...new Set(files.map(({ filename }) => filename))].join(', ')
  return requestError('bad_request', TEXTS.filesDeleted, { names })
}

type Named = { filename: string; sha256: string }

/** Returns the files of an email for another one. @throws RequestError bad_request with the names of deleted files */
export async function reusedFiles<T extends Named>(tx: Tx, teamId: string, files: readonly T[]) {
  const refs = files.map(({ sha256 }) => ({ team_id: teamId, sha256 }))
  const ready = new Set((await usedFiles(tx, refs)).map(({ sha256 }) => sha256))
  const gone = files.filter(({ sha256 }) => !ready.has(sha256))
  if (gone.length > 0) throw deletedFilesError(gone)
  return files.map((file) => ({ ...file, loaded: null }))
}

/** Keeps the files of emails for another attempt. @returns the deleted ones, with the IDs of their emails. */
export async function findMissingFiles(tx: Tx, emails: readonly { team_id: string; id: string }[]) {
  const files = await filesOfEmails(tx, emails)
  if (files.length === 0) return []
  const ready = new Set((await usedFiles(tx, files)).map(({ team_id, sha256 }) => `${team_id}/${sha256}`))
  return files.filter(({ team_id, sha256 }) => !ready.has(`${team_id}/${sha256}`))
}
