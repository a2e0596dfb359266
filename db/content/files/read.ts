/** Reads stored content in pieces. If it was deleted, reading fails with not_found before the first byte. */

import { RequestError } from '../../errors.ts'
import type { Tx } from '../../postgres/pool.ts'
import { TEXTS } from '../texts.ts'
import { type FileRef, piecesOfChunks } from './files.sql.ts'

/** Chunks per statement, about 1 MiB. */
const AT_ONCE = 4

/** Reads a file in pieces. @throws RequestError not_found */
export async function* piecesOf(tx: Tx, ref: FileRef): AsyncGenerator<Buffer> {
  for (let from = 0; ; from += AT_ONCE) {
    const pieces = await piecesOfChunks(tx, ref, { from, count: AT_ONCE })
    if (from === 0 && pieces.length === 0) throw new RequestError('not_found', TEXTS.fileDeleted)
    if (pieces.length === 0) return
    yield* pieces
  }
}
