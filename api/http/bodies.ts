/**
 * Reads and parses request bodies.
 * - A body waits for capacity before it is read, and gets 503 `unavailable` if none is released in time.
 * - Unauthenticated requests can't use the capacity that the largest authenticated body needs.
 * - Large bodies are parsed in a thread, one per team at a time, followed by a pause for other teams.
 * - Rejected bodies are drained, a few at a time, so that clients stay connected until they can read the error.
 */
import type { IncomingMessage } from 'node:http'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { createKeyedSemaphore } from '../../db/process/keyed-semaphore.ts'
import { BODY_BUDGET, type Budget, LARGE_BODIES_SHARE, largestBody, SMALL_BODY_BYTES } from './body-budget.ts'
import { isUrlencoded, type Pair, readForm, toSearchParams } from './forms.ts'
import { type BodyShape, parseBody } from './input.ts'
import { type Kind, type Parser, tooManyLarge } from './parser.ts'
import { discard, readBytes, readJsonBytes, readPieces } from './read-body.ts'

const PARSE_WAIT_MS = 10_000
/** Larger bodies are parsed in the thread. The second limit is for formats that are slow to parse. */
const THREAD_FROM_BYTES = 512 * 1024
const THREAD_FROM_BYTES_IF_HEAVY = 8 * 1024
/** A larger body in the thread, or a longer parse here, is followed by a pause of REST_FACTOR times its duration. */
const REST_FROM_BYTES = 1024 * 1024
const REST_FROM_MS = 10
const REST_FACTOR = 3
/** How many rejected bodies are drained at once. A socket delivers up to 2 MiB before the next one gets its turn. */
const DISCARDED_AT_ONCE = 2
const DISCARD_WAIT_MS = 2_000
/** Much shorter than the time that the owner's next body waits, however slow the machine is. */
const MAX_REST_MS = 500

export type BodyRoute = { method: string; path: string; body?: BodyShape<unknown>; heavy?: true }

/** The body of one request. Its bytes count towards the limits until the request ends. */
export type Body = {
  /** Reads the raw body. @throws RequestError unavailable, and as `readBytes` does */
  bytes(limit?: number): Promise<Buffer>
  /** Never keeps all of the body in memory. @throws RequestError as `bytes` does, and what `take` throws */
  pieces(bounds: { limit: number; size: number }, take: (piece: Buffer) => Promise<void>): Promise<void>
  /** @param limit in bytes. @throws RequestError bad_request, unsupported_media_type, and as `bytes` does */
  form(limit: number): Promise<URLSearchParams>
  /** Parses the body with the route's shape. Undefined if the route has none. @throws RequestError */
  parsed(route: BodyRoute): Promise<unknown>
  /** Releases the capacity early, for callers that have dropped the bytes and keep waiting for something else. */
  release(): void
}

/** A team, a user or a public path, whose bodies share a limit. All unauthenticated bodies share another limit. */
export type Owner = { name: string; isAuthenticated: boolean }

export type Bodies = {
  during<T>(owner: Owner, request: IncomingMessage, work: (body: Body) => Promise<T>): Promise<T>
}

/** Returns the counts of which a body of this owner is part, with their limits. */
function listBounds(
  { name, isAuthenticated }: Owner,
  { perOwner, unauthenticated, perPath, total }: Budget,
): [string, number][] {
  const own: [string, number] = [
    `of ${name}`,
    isAuthenticated ? perOwner : Math.min(perPath, unauthenticated),
  ]
  return [
    ['all', total],
    own,
    ...(isAuthenticated ? [] : [['of unauthenticated', unauthenticated] satisfies [string, number]]),
  ]
}

/** Counts the bytes in memory by owner. Small bodies can use a part that large ones can't. */
function createBudget(budget: Budget) {
  const held = new Map<string, number>()
  const waiting = new Set<() => void>()
  const add = (owner: Owner, bytes: number): void => {
    for (const [count] of listBounds(owner, budget)) {
      const now = (held.get(count) ?? 0) + bytes
      if (now > 0) held.set(count, now)
      else held.delete(count)
    }
  }
  const take = (owner: Owner, bytes: number): boolean => {
    const part = bytes > SMALL_BODY_BYTES ? LARGE_BODIES_SHARE : 1
    const isOver = ([count, most]: [string, number]) => (held.get(count) ?? 0) + bytes > most * part
    if (bytes > 0 && listBounds(owner, budget).some(isOver)) return false
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
    open(owner: Owner) {
      let [reserved, read] = [0, 0]
      return {
        /** Waits for capacity. @throws RequestError unavailable if none is released in time */
        async expect(bytes: number): Promise<void> {
          if (!take(owner, bytes) && !(await takeInTime(owner, bytes))) throw tooManyLarge()
          reserved += bytes
        },
        /** Reserves capacity for a chunk of unknown length. @throws RequestError unavailable */
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

type ParseOptions = {
  kind: Kind
  heavy?: boolean | undefined
  /** True if the bytes are needed after parsing. */
  keeps?: boolean
  here(bytes: Buffer): unknown
}

const toJsonOptions = ({ method, path, body, heavy }: BodyRoute): ParseOptions => ({
  kind: { method, path },
  heavy,
  keeps: body?.withBytes !== undefined,
  here: (bytes) => body && parseBody(body, bytes),
})

/** A part of a multipart form is thirty times slower to parse than a pair. */
const toFormOptions = (type: string): ParseOptions => ({
  kind: { form: type },
  heavy: !isUrlencoded(type),
  here: (bytes) => readForm(type, new Uint8Array(bytes)),
})

/** Parses bodies. Each owner has one at a time here, and one in the parser's thread. */
function createParsing(parser: Parser) {
  const turns = createKeyedSemaphore(1)

  /** The turn ends after the pause, but the request continues before it. @throws RequestError unavailable */
  const inTurn = (
    key: string,
    parse: (begun: () => void) => Promise<unknown>,
    isLong: (took: number) => boolean,
  ): Promise<unknown> => {
    const parsed = Promise.withResolvers<unknown>()
    // Releases the bytes before the pause.
    let todo: typeof parse | null = parse
    const turn = async (): Promise<true> => {
      let began = performance.now()
      const begun = (): void => {
        began = performance.now()
      }
      await todo?.(begun).then(parsed.resolve, parsed.reject)
      todo = null
      const took = performance.now() - began
      await (isLong(took) ? sleep(Math.min(took * REST_FACTOR, MAX_REST_MS)) : setImmediate())
      return true
    }
    turns.run(key, turn, PARSE_WAIT_MS).then((done) => done ?? parsed.reject(tooManyLarge()), parsed.reject)
    return parsed.promise
  }
  return (owner: string, { kind, heavy, keeps, here }: ParseOptions, bytes: Buffer): Promise<unknown> => {
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
      const read = async (route: BodyRoute): Promise<unknown> => {
        const bytes = await readJsonBytes(request, { ...account, limit: largest })
        const body = await parse(owner.name, toJsonOptions(route), bytes)
        return route.body?.withBytes ? route.body.withBytes(body, bytes) : body
      }
      const readWhole = (limit = largest): Promise<Buffer> =>
        readBytes(request, { ...account, limit: Math.min(limit, largest) })
      const readFields = async (limit: number): Promise<URLSearchParams> => {
        const bytes = await readWhole(limit)
        const pairs = await parse(owner.name, toFormOptions(request.headers['content-type'] ?? ''), bytes)
        return toSearchParams(pairs as Pair[])
      }
      /** Reads. If that fails before the body has ended, releases its capacity and drains the rest. */
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
