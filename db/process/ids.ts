/**
 * Makes ids: UUIDv7, whose time is that of what they name (db/validation/ids.ts reads them).
 * Promises: ids of one maker ascend in the order they are made; nobody else makes any.
 */
import { randomFillSync } from 'node:crypto'
import { v5 as uuidv5, v7 as uuidv7 } from 'uuid'

const BYTES = 16
// A sequence has 32 bits; it begins in the lower half, at random, so that it has room to count.
const FIRST = 2 ** 31

/** Random bytes in stock: asked for one id at a time they cost more than all else about it. */
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

/** Makes ids for rows that are created at one time. */
export function idsAt(at: Date): () => string {
  const msecs = at.getTime()
  let seq = Math.floor(Math.random() * FIRST)
  return () => uuidv7({ msecs, seq: seq++, random: randomness() })
}

let current = { at: new Date(0), nextId: (): string => '' }

/** An id of this moment. They ascend, even where the clock goes back. */
export function idNow(): string {
  const now = new Date()
  if (now > current.at) current = { at: now, nextId: idsAt(now) }
  return current.nextId()
}

/** An id of this time; those of one time come in any order. */
export const idAt = (at: Date): string => uuidv7({ msecs: at.getTime(), random: randomness() })

/** Makes an id of a name within a namespace: the same for the same name. */
export const idOfName = (namespace: string, name: string): string => uuidv5(name, namespace)
