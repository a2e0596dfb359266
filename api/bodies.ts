/**
 * Bodies on their way in: how many bytes of them a process holds, and where and in whose turn they are parsed.
 * Promises: bodies cannot fill the memory (past a bound: 503 `unavailable`). No team's parsing keeps the others
 * waiting: large bodies are parsed in a thread, one of each team at a time; of small ones a team gets a few parsed,
 * then the others have their turn. Must not know any resource.
 */
import type { IncomingMessage } from 'node:http'
import { setImmediate } from 'node:timers/promises'
import { Refusal } from '../db/errors.ts'
import { createTurns, type Turns } from '../db/process/turns.ts'
import { type BodyShape, parseBody, readBytes, readJsonBytes } from './input.ts'
import type { Parser } from './parser.ts'

/** What a process holds of one owner's bodies, and of all together, in bytes. */
const BOUNDS = { ofOne: 48 * 1024 * 1024, inAll: 256 * 1024 * 1024 }
/**
 * What is parsed where it is read, in bytes: most batches, and at worst some 15 ms. A thread costs more than it spares
 * here: batches of 100 small emails came in at less than half the rate.
 */
const SMALL = 64 * 1024
/** So many large bodies of an owner come in at once; so many small ones are parsed before the others' turn. */
const LARGE_AT_ONCE = 4
const SMALL_AT_ONCE = 4
/** How long a body waits for its turn, in milliseconds. */
const PATIENCE = 10_000

/** A route, as far as it says what it takes. */
export type Taking = { method: string; path: string; body?: BodyShape<unknown> }

/** The body of one request. What is read of it counts until the request's work has ended. */
export type Body = {
  /** As it came. @throws Refusal unavailable, and as `readBytes` does */
  bytes(limit?: number): Promise<Buffer>
  /** By the shape that the route declares; undefined when it declares none. @throws Refusal */
  parsed(route: Taking): Promise<unknown>
}

export type Bodies = {
  /** Does the work of a request, which may read its body. @param owner whose bodies count together. */
  during<T>(owner: string, request: IncomingMessage, work: (body: Body) => Promise<T>): Promise<T>
}

/** Chunked ones may become large. */
const isLarge = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > SMALL

/** Work in a turn of its owner's. @throws Refusal unavailable when none came free in time. */
async function inTurn<T>(turns: Turns, owner: string, work: () => Promise<T>): Promise<T> {
  const done = await turns.run(owner, async () => ({ result: await work() }), PATIENCE)
  if (done) return done.result
  throw new Refusal('unavailable', 'too many large requests wait for each other; please retry', 1)
}

/** Counts the bytes that are held, by owner. */
function createBudget({ ofOne, inAll }: typeof BOUNDS) {
  const held = new Map<string, number>()
  let all = 0
  return {
    /** @throws Refusal unavailable when there is no room for so many more. */
    take(owner: string, bytes: number): void {
      const own = (held.get(owner) ?? 0) + bytes
      if (own > ofOne || all + bytes > inAll) {
        throw new Refusal('unavailable', 'too many bodies are coming in at once; please retry', 1)
      }
      held.set(owner, own)
      all += bytes
    },
    give(owner: string, bytes: number): void {
      const own = (held.get(owner) ?? 0) - bytes
      if (own > 0) held.set(owner, own)
      else held.delete(owner)
      all -= bytes
    },
  }
}

/** Makes a process's account of its bodies. */
export function createBodies(parser: Parser, bounds = BOUNDS): Bodies {
  const budget = createBudget(bounds)
  const reading = createTurns(LARGE_AT_ONCE)
  const parsingHere = createTurns(SMALL_AT_ONCE)
  const parsingThere = createTurns(1)

  const parse = (owner: string, route: Taking, bytes: Buffer): Promise<unknown> => {
    if (bytes.length > SMALL) return inTurn(parsingThere, owner, () => parser.parse(route, bytes))
    return inTurn(parsingHere, owner, async () => {
      // Let others work before this owner's next body.
      await setImmediate()
      return route.body && parseBody(route.body, bytes)
    })
  }
  return {
    async during(owner, request, work) {
      let held = 0
      const hold = (bytes: number): void => {
        budget.take(owner, bytes)
        held += bytes
      }
      const read = async (route: Taking) => parse(owner, route, await readJsonBytes(request, hold))
      try {
        return await work({
          bytes: (limit) => readBytes(request, { hold, limit }),
          parsed: async (route) => {
            if (!route.body) return undefined
            return isLarge(request) ? inTurn(reading, owner, () => read(route)) : read(route)
          },
        })
      } finally {
        budget.give(owner, held)
      }
    },
  }
}
