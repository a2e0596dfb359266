/**
 * Divides a search without an index into parts and stops it when its time has passed. Each part is sized to be
 * read within the user's patience and the statement timeout. A stopped search returns where to continue.
 */

/** How long a page of a search may start further parts, in milliseconds. */
export const SEARCH_MS = 100
/** The target time for reading one part, in milliseconds, far below the statement timeout. */
const LONGEST_PART_MS = 1_000

/** The lengths of the first and the longest part. */
type Lengths = { first: number; longest?: number }

/**
 * Yields the length of each part, such as a number of rows or of milliseconds. The time between two yields
 * measures how long reading a part lasts. Ends after `patience` milliseconds of `now`.
 */
export function* partLengths(
  { first, longest = Number.POSITIVE_INFINITY }: Lengths,
  patience: number,
  now = () => performance.now(),
): Generator<number> {
  const started = now()
  for (let length = first; ; ) {
    const began = now()
    yield length
    const ended = now()
    if (ended - started >= patience) return
    // A part twice as long needs about twice the time, so it is only started if it can end in time.
    const took = ended - began
    const growth = Math.min(2, Math.max(1, (started + patience - ended) / took))
    length = Math.min(longest, length * Math.min(growth, LONGEST_PART_MS / took))
  }
}

/** Rows, and the key to continue after if the search was stopped. Null if the page is full or nothing is left. */
export type Searched<R> = { rows: readonly R[]; reached: string | null }

/** Up to `limit` matches after the key `before`. */
export type SearchPage = { before?: string | undefined; limit: number }
/** A part looks at the next `length` rows. */
export type SearchPart = SearchPage & { length: number }

/** Searches rows until there are `limit` matches, no rows are left or the time has passed. */
export async function searchParts<R>(
  { before, limit, patience = SEARCH_MS, ...lengths }: Lengths & SearchPage & { patience?: number },
  read: (part: SearchPart) => Promise<Searched<R>>,
): Promise<Searched<R>> {
  const rows: R[] = []
  let reached: string | null = null
  for (const length of partLengths(lengths, patience)) {
    const place = { before: reached ?? before, limit: limit - rows.length }
    const part = await read({ ...place, length: Math.max(1, Math.round(length)) })
    rows.push(...part.rows)
    reached = rows.length < limit ? part.reached : null
    if (reached === null) break
  }
  return { rows, reached }
}
