/**
 * Searches contacts interactively. Uses an index if there is one. Otherwise scans growing parts of the list, newest
 * first, until the page is full or time runs out, and returns where to continue.
 */
import type { Tx } from '../../postgres/pool.ts'
import type { ContactRow } from './contacts.sql.ts'
import { type ContactSearch, contactFurther, contactsFound } from './search.sql.ts'
import { countSubscribers } from './topic-counts.sql.ts'

/** `reached` is the contact to continue after if the search ran out of time, or null if it is complete. */
export type SearchedContacts = { contacts: ContactRow[]; reached: string | null }

/** After this time, no further part is scanned, in milliseconds. */
const SEARCH_MS = 100
/** The number of contacts in the first part, and in the largest one. */
const FIRST_STRETCH = 2_000
const LONGEST_STRETCH = 50_000
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
  { before, limit }: { before?: string | undefined; limit: number },
  { patience = SEARCH_MS, first = FIRST_STRETCH } = {},
): Promise<SearchedContacts> {
  const way = await wayTo(tx, teamId, search)
  if (way !== 'looking') {
    const contacts = await contactsFound(tx, teamId, search, { before, limit, way })
    return { contacts: [...contacts], reached: null }
  }
  const started = performance.now()
  const contacts: ContactRow[] = []
  let from = before
  for (let length = first; ; length = Math.min(LONGEST_STRETCH, length * 4)) {
    const stretch = { before: from, limit: limit - contacts.length, way: { look: length } }
    contacts.push(...(await contactsFound(tx, teamId, search, stretch)))
    if (contacts.length >= limit) return { contacts, reached: null }
    const reached = await contactFurther(tx, teamId, from, length)
    if (reached === null || performance.now() - started > patience) return { contacts, reached }
    from = reached
  }
}
