/**
 * Ids of rows: UUIDv7 whose time is the row's `created_at`, so that a stretch of time is a stretch of the primary key.
 * Promises: ids of one maker ascend in the order they are made.
 */
import { randomUUID } from 'node:crypto'
import { parse, v7 as uuidv7 } from 'uuid'
import { isUuid } from './strings.ts'

// A sequence has 32 bits; it begins in the lower half, at random, so that it has room to count.
const FIRST = 2 ** 31

/** Of UUIDs Node keeps a stock: bytes asked for by themselves cost more than all else about an id. */
const randomness = (): Uint8Array => parse(randomUUID())

/** Makes ids for rows that are created at one time. */
export function idsAt(at: Date): () => string {
  const msecs = at.getTime()
  let seq = Math.floor(Math.random() * FIRST)
  return () => uuidv7({ msecs, seq: seq++, random: randomness() })
}

/** An id of this moment; those of one millisecond come in any order. */
export const idNow = (): string => uuidv7({ random: randomness() })

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
