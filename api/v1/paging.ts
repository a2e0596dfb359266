/**
 * How lists are paged: by `limit`, and `cursor`, which is the place of a page's first row. Promises: `next_cursor` is
 * there while more follow. Must not know a list.
 */
import { wholeNumber } from '../http/input.ts'

const DEFAULT_LIMIT = 20
const MAX_LIMIT = 100

/** What a list's query takes for it. */
export const paging = () => ({
  limit: wholeNumber(1, MAX_LIMIT),
  cursor: wholeNumber(0, Number.MAX_SAFE_INTEGER),
})

/** The rows that are asked for, and the cursor of those after them. */
export async function readPage<R>(
  asked: { limit?: string | undefined; cursor?: string | undefined },
  read: (page: { limit: number; offset: number }) => Promise<readonly R[]>,
): Promise<{ rows: R[]; next: { next_cursor?: string } }> {
  const limit = Number(asked.limit ?? DEFAULT_LIMIT)
  const offset = Number(asked.cursor ?? 0)
  // One more than is shown says whether a page follows.
  const rows = await read({ limit: limit + 1, offset })
  const next = rows.length > limit ? { next_cursor: String(offset + limit) } : {}
  return { rows: rows.slice(0, limit), next }
}
