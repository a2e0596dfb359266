/**
 * Searches contacts interactively. Uses an index if there is one. Otherwise it scans growing parts of the
 * list, newest first, until the page is full or time runs out. A search is quick for any number of contacts,
 * returns where to continue, and never returns a contact twice.
 */
import type { Tx } from '../../postgres/pool.ts'
import type { ContactRow } from './contacts.sql.ts'
import { type ContactSearch, contactFurther, contactsFound } from './search.sql.ts'
import { subscribersOf } from './topic-counts.sql.ts'

/** A page, and the contact to go on after when the search was broken off; null when all was looked through. */
export type SearchedContacts = { contacts: ContactRow[]; reached: string | null }

/** For how long to begin further stretches, in milliseconds. */
const SEARCH_MS = 100
/** How many contacts the first stretch has, and the longest one. */
const FIRST_STRETCH = 2_000
const LONGEST_STRETCH = 50_000
/** A topic with fewer contacts than this is found by its index. */
const LARGE_TOPIC = 5_000
/** The index on parts of addresses knows no shorter ones. */
const SHORTEST_INDEXED = 3

/** What leads to the contacts that fit soonest. */
async function wayTo(
  tx: Tx,
  teamId: string,
  { email, words, status, topic, import: imported }: ContactSearch,
): Promise<'index' | 'topic' | 'looking'> {
  if (imported !== undefined) return 'index'
  if (words !== undefined) return 'looking'
  if (topic !== undefined) {
    const counts = await subscribersOf(tx, teamId, [topic])
    if ((counts.get(topic) ?? 0) < LARGE_TOPIC) return 'topic'
  }
  if (status !== undefined && status !== 'subscribed') return 'index'
  if (email !== undefined && [...email].length >= SHORTEST_INDEXED) return 'index'
  return email === undefined && status === undefined && topic === undefined ? 'index' : 'looking'
}

/** A page of a team's contacts that fit, newest first; with `before`, those that follow this one. */
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
