/**
 * Stores the bytes of attachments before the email that uses them is accepted, outside transactions that lock the
 * team's account. Content that the team already has isn't stored again. Unpublished content is deleted later.
 */
import type { Tx } from '../../postgres/pool.ts'
import { idNow } from '../../process/ids.ts'
import { CHUNK } from '../../validation/files.ts'
import { type Chunk, dropLoading, insertChunks, insertLoading, usedFiles } from './files.sql.ts'

/** Limits of one statement: chunks, and approximate bytes. */
const MAX_CHUNKS = 100
const STATEMENT_BYTES = 4 * CHUNK

type Contents = ReadonlyMap<string, Uint8Array>

/** Splits contents into chunks, grouped by statement. */
function* statementsOf(files: readonly { id: string; bytes: Uint8Array }[]): Generator<Chunk[]> {
  let batch: Chunk[] = []
  let size = 0
  for (const { id: file_id, bytes } of files) {
    for (let at = 0; at < bytes.length; at += CHUNK) {
      const piece = { file_id, part: at / CHUNK, bytes: bytes.subarray(at, at + CHUNK) }
      if (batch.length === MAX_CHUNKS || (batch.length > 0 && size + piece.bytes.length > STATEMENT_BYTES)) {
        yield batch
        batch = []
        size = 0
      }
      batch.push(piece)
      size += piece.bytes.length
    }
  }
  if (batch.length > 0) yield batch
}

/**
 * Stores new contents, unpublished, and runs `work` with their IDs. Existing contents, including `uses`, are kept for
 * another day.
 */
export async function withLoaded<T>(
  tx: Tx,
  teamId: string,
  { contents, uses }: { contents: Contents; uses: readonly string[] },
  work: (loaded: ReadonlyMap<string, string>) => Promise<T>,
): Promise<T> {
  const refs = [...new Set([...contents.keys(), ...uses])].map((sha256) => ({ team_id: teamId, sha256 }))
  const ready = new Set((await usedFiles(tx, refs)).map(({ sha256 }) => sha256))
  const files = [...contents].flatMap(([sha256, bytes]) =>
    ready.has(sha256) ? [] : [{ id: idNow(), sha256, bytes, size: bytes.length }],
  )
  try {
    if (files.length > 0) await insertLoading(tx, teamId, files)
    for (const batch of statementsOf(files)) await insertChunks(tx, teamId, batch)
    return await work(new Map(files.map(({ sha256, id }) => [sha256, id])))
  } finally {
    const ids = files.map(({ id }) => id)
    // If this fails, the file is collected within the hour.
    if (ids.length > 0) await dropLoading(tx, teamId, ids).catch(() => {})
  }
}
