/** Generates UUIDv7 IDs. Their time is that of their row (db/validation/ids.ts reads it). */
import { randomFillSync } from 'node:crypto'
import { v5 as uuidv5, v7 as uuidv7 } from 'uuid'

const BYTES = 16
// Sequences have 32 bits. They start at random in the lower half, so that they can count up.
const FIRST = 2 ** 31

/** A pool of random bytes. Fetching them for each ID would be the most expensive step. */
const stock = new Uint8Array(256 * BYTES)
let used = stock.length

function randomness(): Uint8Array {
  if (used === stock.length) {
    randomFillSync(stock)
    used = 0
  }
  used += BYTES
  return stock.subarray(used - BYTES, used)
}

/** Creates a generator for rows that share a creation time. */
export function idsAt(at: Date): () => string {
  const msecs = at.getTime()
  let seq = Math.floor(Math.random() * FIRST)
  return () => uuidv7({ msecs, seq: seq++, random: randomness() })
}

let current = { at: new Date(0), nextId: (): string => '' }

/** Generates an ID for the current time. IDs ascend, even if the clock moves back. */
export function idNow(): string {
  const now = new Date()
  if (now > current.at) current = { at: now, nextId: idsAt(now) }
  return current.nextId()
}

/** Generates an ID for a given time. IDs of the same time have no order. */
export const idAt = (at: Date): string => uuidv7({ msecs: at.getTime(), random: randomness() })

/** Derives an ID from a name. The same name in the same namespace always has the same ID. */
export const idOfName = (namespace: string, name: string): string => uuidv5(name, namespace)
