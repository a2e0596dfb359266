/**
 * Searches contacts interactively. Uses an index if there is one. Otherwise scans growing parts of the list, newest
 * first, until the page is full or time runs out, and returns where to continue.
 */
import type { Tx } from '../../postgres/pool.ts'
import { SEARCH_MS, type Searched, type SearchPage, searchParts } from '../../postgres/search-parts.ts'
import type { ContactRow } from './contacts.sql.ts'
import { type ContactSearch, contactFurther, contactsFound } from './search.sql.ts'
import { countSubscribers } from './topic-counts.sql.ts'

/** The number of contacts in the first part, and in the largest one. */
const FIRST_PART = 2_000
const LONGEST_PART = 50_000
/** Smaller topics are searched with their index. */
const LARGE_TOPIC = 5_000
/** The trigram index needs at least this many characters. */
const SHORTEST_INDEXED = 3

/** Chooses the fastest way to find the contacts. */
async function wayTo(
  tx: Tx,
  teamId: string,
  { email, words, status, topic, import: imported }: ContactSearch,
): Promise<'index' | 'topic' | 'looking'> {
  if (imported !== undefined) return 'index'
  if (words !== undefined) return 'looking'
  if (topic !== undefined) {
    const counts = await countSubscribers(tx, teamId, [topic])
    if ((counts.get(topic) ?? 0) < LARGE_TOPIC) return 'topic'
  }
  if (status !== undefined && status !== 'subscribed') return 'index'
  if (email !== undefined && [...email].length >= SHORTEST_INDEXED) return 'index'
  return email === undefined && status === undefined && topic === undefined ? 'index' : 'looking'
}

export async function searchContacts(
  tx: Tx,
  teamId: string,
  search: ContactSearch,
  { before, limit }: SearchPage,
  { patience = SEARCH_MS, first = FIRST_PART } = {},
): Promise<Searched<ContactRow>> {
  const way = await wayTo(tx, teamId, search)
  if (way !== 'looking') {
    return { rows: await contactsFound(tx, teamId, search, { before, limit, way }), reached: null }
  }
  const bounds = { before, limit, patience, first, longest: LONGEST_PART }
  return searchParts(bounds, async ({ length, ...place }) => {
    const rows = await contactsFound(tx, teamId, search, { ...place, way: { look: length } })
    const isFull = rows.length >= place.limit
    return { rows, reached: isFull ? null : await contactFurther(tx, teamId, place.before, length) }
  })
}
