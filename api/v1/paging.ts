/** Paging by `limit` and `cursor`, the offset of a page's first row. `next_cursor` is set if more rows follow. */
import { wholeNumber } from '../http/input.ts'

const DEFAULT_LIMIT = 20
const MAX_LIMIT = 100

export const paging = () => ({
  limit: wholeNumber(1, MAX_LIMIT),
  cursor: wholeNumber(0, Number.MAX_SAFE_INTEGER, 'must be the next_cursor of the previous response'),
})

/** Reads a page. @returns its rows, and the cursor of the next page if there is one */
export async function readPage<R>(
  asked: { limit?: string | undefined; cursor?: string | undefined },
  read: (page: { limit: number; offset: number }) => Promise<readonly R[]>,
): Promise<{ rows: R[]; next: { next_cursor?: string } }> {
  const limit = Number(asked.limit ?? DEFAULT_LIMIT)
  const offset = Number(asked.cursor ?? 0)
  // One row more than the page has shows whether another page follows.
  const rows = await read({ limit: limit + 1, offset })
  const next = rows.length > limit ? { next_cursor: String(offset + limit) } : {}
  return { rows: rows.slice(0, limit), next }
}
