/**
 * Ids of rows: UUIDv7 whose time is the row's `created_at`, so that a stretch of time is a stretch of the primary key.
 * Promises: ids of one maker ascend in the order they are made.
 */
import { randomBytes } from 'node:crypto'
import { v7 as uuidv7 } from 'uuid'
import { isUuid } from './strings.ts'

/** Bytes of randomness for an id, and for how many of them it is asked for at once. */
const RANDOM = 16
const AT_ONCE = 16

// A sequence has 32 bits; it begins in the lower half, at random, so that it has room to count.
const FIRST = 2 ** 31

/** Makes ids for rows that are created at one time. */
export function idsAt(at: Date): () => string {
  const msecs = at.getTime()
  let seq = Math.floor(Math.random() * FIRST)
  let random = Buffer.alloc(0)
  return () => {
    // Asked for by itself for each id, randomness costs more than all else about it.
    if (random.length === 0) random = randomBytes(RANDOM * AT_ONCE)
    const own = random.subarray(0, RANDOM)
    random = random.subarray(RANDOM)
    return uuidv7({ msecs, seq: seq++, random: own })
  }
}

/** No id of this time or later is below it, and each earlier one is: a bound to compare with. */
export const firstIdAt = (at: Date): string =>
  uuidv7({ msecs: Math.max(0, at.getTime()), seq: 0, random: new Uint8Array(16) })

/** What an id may stand for as people copy it: a Message-ID has angle brackets, and the row's id before its `@`. */
export function spellingsOfId(given: string): { texts: string[]; uuids: string[] } {
  const bare = given.replace(/^<([^<>]*)>$/, '$1')
  const at = bare.lastIndexOf('@')
  const texts = [...new Set([given, bare, ...(at > 0 ? [bare.slice(0, at)] : [])])]
  return { texts, uuids: texts.filter(isUuid).map((text) => text.toLowerCase()) }
}
