/** Deletes recipients' texts from stored WhatsApp posts, because web processes of 0.1.0 store complete posts. */
import { rewriteReports, storedAfter } from '../../delivery/reports/reports.sql.ts'
import type { Tx } from '../../postgres/pool.ts'
import { cutPost } from './cut-post.ts'

/** Returns the part of a stored post to keep. Null means nothing, undefined means no change. */
function reducePost(body: Buffer): Buffer | null | undefined {
  const cut = cutPost(body)
  if (cut === null) return body.length === 0 ? undefined : Buffer.alloc(0)
  return cut.body?.equals(body) ? undefined : cut.body
}

/** Purges the next reports after an ID. `changed` counts the reduced and deleted ones. */
export async function purgeTexts(tx: Tx, after: string) {
  const stored = await storedAfter(tx, 'whatsapp', after)
  const rewritten = stored.flatMap(({ id, body: given }) => {
    const body = given === null ? undefined : reducePost(given)
    return body === undefined ? [] : [{ id, body }]
  })
  await rewriteReports(tx, rewritten)
  const last = stored.at(-1)
  return { cursor: last ? { after: last.id } : null, checked: stored.length, changed: rewritten.length }
}
