/**
 * Bodies on their way in: how many bytes of them a process holds, and where and in whose turn they are parsed.
 * Promises:
 * - bodies cannot fill the memory: one waits for room before it is read, and gets 503 `unavailable` when none comes;
 * - strangers never take the room of the largest body of somebody who has proved who they are;
 * - no team's parsing keeps the others waiting: what takes long is parsed in a thread, one body of each team at a time,
 *   and a rest follows it;
 * - of bodies that are refused a few at a time are read to their end, so that their clients live to see why.
 * Must not know any resource.
 */
import type { IncomingMessage } from 'node:http'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { createKeyedSemaphore } from '../../db/process/keyed-semaphore.ts'
import { BODY_BUDGET, type Budget, LARGE_BODIES_SHARE, largestBody, SMALL_BODY_BYTES } from './body-budget.ts'
import { isUrlencoded, type Pair, readForm, toSearchParams } from './forms.ts'
import { type BodyShape, parseBody } from './input.ts'
import { type Kind, type Parser, tooManyLarge } from './parser.ts'
import { discard, readBytes, readJsonBytes, readPieces } from './read-body.ts'

/** How long what was read waits for its parsing, in milliseconds. */
const PARSE_WAIT_MS = 10_000
/** From here on a body is parsed in the thread, in bytes; and one that takes long for its length. */
const THREAD_FROM_BYTES = 512 * 1024
const THREAD_FROM_BYTES_IF_HEAVY = 8 * 1024
/** One that large, or parsed here for that many milliseconds, is followed by a rest of REST_FACTOR times as long. */
const REST_FROM_BYTES = 1024 * 1024
const REST_FROM_MS = 10
const REST_FACTOR = 3
/** How many refused bodies are discarded at once: a socket hands over up to 2 MiB before the next one's turn. */
const DISCARDED_AT_ONCE = 2
/** How long a body that is refused waits to be thrown away, in milliseconds. */
const DISCARD_WAIT_MS = 2_000
/** However slow the machine made a parsing, the rest after it ends well before the owner's next body gives up. */
const MAX_REST_MS = 500

/** A route, as far as it says what it takes. */
export type Taking = { method: string; path: string; body?: BodyShape<unknown>; heavy?: true }

/** The body of one request. What is read of it counts until the request's work has ended. */
export type Body = {
  /** As it came. @throws RequestError unavailable, and as `readBytes` does */
  bytes(limit?: number): Promise<Buffer>
  /** As it comes, in pieces: it is never held whole. @throws RequestError as `bytes` does, and what `take` throws */
  pieces(bounds: { limit: number; size: number }, take: (piece: Buffer) => Promise<void>): Promise<void>
  /**
   * The fields of a form of at most `limit` bytes.
   * @throws RequestError bad_request, unsupported_media_type, and as `bytes` does
   */
  form(limit: number): Promise<URLSearchParams>
  /** By the shape that the route declares; undefined when it declares none. @throws RequestError */
  parsed(route: Taking): Promise<unknown>
  /** Its room is for others. Said by who goes on waiting for something else, and has dropped what was read. */
  release(): void
}

/**
 * Whose bodies count together and are parsed in turn: a team's, a person's, or those that came to one door. What comes
 * from anybody who has proved nothing counts together, too.
 */
export type Owner = { name: string; isProved: boolean }

export type Bodies = {
  /** Does the work of a request, which may read its body. */
  during<T>(owner: Owner, request: IncomingMessage, work: (body: Body) => Promise<T>): Promise<T>
}

/** The counts that a body of an owner is part of, and the most of each. */
function boundsOf(
  { name, isProved }: Owner,
  { ofOne, unproved, atOneDoor, inAll }: Budget,
): [string, number][] {
  const own: [string, number] = [`of ${name}`, isProved ? ofOne : Math.min(atOneDoor, unproved)]
  return [['all', inAll], own, ...(isProved ? [] : [['of strangers', unproved] satisfies [string, number]])]
}

/** Counts the bytes that are held, by owner. What finds no room waits; a small body takes what a large one cannot. */
function createBudget(budget: Budget) {
  const held = new Map<string, number>()
  const waiting = new Set<() => void>()
  const add = (owner: Owner, bytes: number): void => {
    for (const [count] of boundsOf(owner, budget)) {
      const now = (held.get(count) ?? 0) + bytes
      if (now > 0) held.set(count, now)
      else held.delete(count)
    }
  }
  const take = (owner: Owner, bytes: number): boolean => {
    const part = bytes > SMALL_BODY_BYTES ? LARGE_BODIES_SHARE : 1
    const isOver = ([count, most]: [string, number]) => (held.get(count) ?? 0) + bytes > most * part
    if (bytes > 0 && boundsOf(owner, budget).some(isOver)) return false
    add(owner, bytes)
    return true
  }
  const give = (owner: Owner, bytes: number): void => {
    add(owner, -bytes)
    for (const tryAgain of waiting) tryAgain()
  }
  const takeInTime = (owner: Owner, bytes: number): Promise<boolean> =>
    new Promise((resolve) => {
      const end = (isTaken: boolean): void => {
        clearTimeout(late)
        waiting.delete(tryAgain)
        resolve(isTaken)
      }
      const tryAgain = (): void => {
        if (take(owner, bytes)) end(true)
      }
      const late = setTimeout(end, budget.patience, false)
      waiting.add(tryAgain)
    })
  return {
    /** What one request holds, until it lets go. */
    open(owner: Owner) {
      let [reserved, read] = [0, 0]
      return {
        /** Waits for room. @throws RequestError unavailable when none came free in time. */
        async expect(bytes: number): Promise<void> {
          if (!take(owner, bytes) && !(await takeInTime(owner, bytes))) throw tooManyLarge()
          reserved += bytes
        },
        /** A body that did not say how long it is takes its room as it comes. @throws RequestError unavailable */
        hold(bytes: number): void {
          read += bytes
          if (read <= reserved) return
          if (!take(owner, read - reserved)) throw tooManyLarge()
          reserved = read
        },
        release(): void {
          give(owner, reserved)
          reserved = 0
          read = 0
        },
      }
    },
  }
}

/** How a body is parsed, and whether that takes long for its length. */
type Parsing = {
  kind: Kind
  heavy?: boolean | undefined
  /** Whether its bytes are needed afterwards. */
  keeps?: boolean
  here(bytes: Buffer): unknown
}

const jsonOf = ({ method, path, body, heavy }: Taking): Parsing => ({
  kind: { method, path },
  heavy,
  keeps: body?.withBytes !== undefined,
  here: (bytes) => body && parseBody(body, bytes),
})

/** A part of a multipart form takes thirty times what a pair does. */
const formOf = (type: string): Parsing => ({
  kind: { form: type },
  heavy: !isUrlencoded(type),
  here: (bytes) => readForm(type, new Uint8Array(bytes)),
})

/** Parses bodies: of each owner one at a time here, and one in the parser's thread. */
function createParsing(parser: Parser) {
  const turns = createKeyedSemaphore(1)

  /** The turn ends with the rest; the body's own request goes on before. @throws RequestError unavailable */
  const inTurn = (
    key: string,
    parse: (begun: () => void) => Promise<unknown>,
    isLong: (took: number) => boolean,
  ): Promise<unknown> => {
    const parsed = Promise.withResolvers<unknown>()
    // What was read is not held while its owner rests.
    let todo: typeof parse | null = parse
    const turn = async (): Promise<true> => {
      let began = performance.now()
      const begun = (): void => {
        began = performance.now()
      }
      await todo?.(begun).then(parsed.resolve, parsed.reject)
      todo = null
      const took = performance.now() - began
      // Others work before this owner's next body.
      await (isLong(took) ? sleep(Math.min(took * REST_FACTOR, MAX_REST_MS)) : setImmediate())
      return true
    }
    turns.run(key, turn, PARSE_WAIT_MS).then((done) => done ?? parsed.reject(tooManyLarge()), parsed.reject)
    return parsed.promise
  }
  return (owner: string, { kind, heavy, keeps, here }: Parsing, bytes: Buffer): Promise<unknown> => {
    const { length } = bytes
    if (length > (heavy ? THREAD_FROM_BYTES_IF_HEAVY : THREAD_FROM_BYTES))
      return inTurn(
        `there ${owner}`,
        (begun) => parser.parse(kind, keeps ? Buffer.from(bytes) : bytes, begun),
        () => length > REST_FROM_BYTES,
      )
    return inTurn(
      `here ${owner}`,
      async () => here(bytes),
      (took) => took > REST_FROM_MS,
    )
  }
}

export function createBodies(parser: Parser, bounds = BODY_BUDGET): Bodies {
  const budget = createBudget(bounds)
  const parse = createParsing(parser)
  const discarding = createKeyedSemaphore(DISCARDED_AT_ONCE)
  const largest = largestBody(bounds)
  return {
    async during(owner, request, work) {
      const account = budget.open(owner)
      const read = async (route: Taking): Promise<unknown> => {
        const bytes = await readJsonBytes(request, { ...account, limit: largest })
        const body = await parse(owner.name, jsonOf(route), bytes)
        return route.body?.withBytes ? route.body.withBytes(body, bytes) : body
      }
      const readWhole = (limit = largest): Promise<Buffer> =>
        readBytes(request, { ...account, limit: Math.min(limit, largest) })
      const readFields = async (limit: number): Promise<URLSearchParams> => {
        const bytes = await readWhole(limit)
        const pairs = await parse(owner.name, formOf(request.headers['content-type'] ?? ''), bytes)
        return toSearchParams(pairs as Pair[])
      }
      /** Reads; what is refused with a rest on its way counts no longer, and is thrown away. */
      const orDiscarded = async <T>(reading: () => Promise<T>): Promise<T> => {
        try {
          return await reading()
        } catch (error) {
          if (!request.complete) {
            account.release()
            await discarding.run('all', () => discard(request), DISCARD_WAIT_MS)
          }
          throw error
        }
      }
      try {
        return await work({
          release: account.release,
          pieces: (bounds, take) => orDiscarded(() => readPieces(request, { ...account, ...bounds }, take)),
          form: (limit) => orDiscarded(() => readFields(limit)),
          bytes: (limit) => orDiscarded(() => readWhole(limit)),
          parsed: async (route) => (route.body ? orDiscarded(() => read(route)) : undefined),
        })
      } finally {
        account.release()
      }
    },
  }
}
