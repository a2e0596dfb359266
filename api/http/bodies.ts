/**
 * Bodies on their way in: how many bytes of them a process holds, and where and in whose turn they are parsed.
 * Promises: bodies cannot fill the memory (past a bound: 503 `unavailable`). No team's parsing keeps the others
 * waiting: bodies that take long are parsed in a thread, one of each team at a time, with a rest after those of
 * megabytes; of others a team gets a few parsed, then the others have their turn. Nor do bodies that are refused: of
 * those a few at a time are read to their end, so that their clients live to see why. Must not know any resource.
 */
import type { IncomingMessage } from 'node:http'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { Refusal } from '../../db/errors.ts'
import { createKeyedSemaphore, type KeyedSemaphore } from '../../db/process/keyed-semaphore.ts'
import { fieldsOf, isUrlencoded, type Pair, readForm } from './forms.ts'
import {
  type BodyShape,
  discard,
  parseBody,
  type Reading,
  readBytes,
  readJsonBytes,
  readPieces,
} from './input.ts'
import { holdsAtMost } from './json-values.ts'
import type { Kind, Parser } from './parser.ts'

/** What a process holds of one owner's bodies, and of all together, in bytes. */
const BOUNDS = { ofOne: 48 * 1024 * 1024, inAll: 256 * 1024 * 1024 }
/**
 * What is parsed where it is read, in bytes: small bodies, and longer ones that hold few values, as most batches do; at
 * worst some 15 ms. In the thread a batch of 100 emails costs a quarter more processor time, and it takes 60 MB itself.
 */
const SMALL = 64 * 1024
const LIGHT = { bytes: 512 * 1024, values: 8 * 1024 }
/** From here on, in bytes, a body is followed by a rest of REST times its parsing: what it costs later, and more. */
const HUGE = 1024 * 1024
const REST = 3
/** How many large bodies of an owner come in at once, and how many small ones are parsed before the others' turn. */
const LARGE_AT_ONCE = 4
const SMALL_AT_ONCE = 4
/** How many refused bodies are discarded at once: a socket hands over up to 2 MiB before the next one's turn. */
const DISCARDED_AT_ONCE = 2
/** How long a body waits for its turn, in milliseconds; and one that is refused, to be thrown away. */
const PATIENCE = 10_000
/** However slow the machine made a parsing, the rest after it ends well before the owner's next body gives up. */
const LONGEST_REST = PATIENCE / 2
const REFUSED_PATIENCE = 2_000

/** A route, as far as it says what it takes. */
export type Taking = { method: string; path: string; body?: BodyShape<unknown> }

/** The body of one request. What is read of it counts until the request's work has ended. */
export type Body = {
  /** As it came. @throws Refusal unavailable, and as `readBytes` does */
  bytes(limit?: number): Promise<Buffer>
  /** As it comes, in pieces: it is never held whole. @throws Refusal as `bytes` does, and what `take` throws */
  pieces(bounds: { limit: number; size: number }, take: (piece: Buffer) => Promise<void>): Promise<void>
  /**
   * The fields of a form of at most `limit` bytes.
   * @throws Refusal bad_request, unsupported_media_type, and as `bytes` does
   */
  form(limit: number): Promise<URLSearchParams>
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
async function inTurn<T>(semaphore: KeyedSemaphore, owner: string, work: () => Promise<T>): Promise<T> {
  const done = await semaphore.run(owner, async () => ({ result: await work() }), PATIENCE)
  if (done) return done.result
  throw new Refusal('unavailable', 'too many large requests wait for each other; please retry', 1)
}

/** Counts the bytes that are held, by owner. */
function createBudget({ ofOne, inAll }: typeof BOUNDS) {
  const held = new Map<string, number>()
  let all = 0
  /** @throws Refusal unavailable when there is no room for that many more bytes. */
  const expect = (owner: string, bytes: number): void => {
    if ((held.get(owner) ?? 0) + bytes <= ofOne && all + bytes <= inAll) return
    throw new Refusal('unavailable', 'too many bodies are coming in at once; please retry', 1)
  }
  return {
    expect,
    /** @throws as `expect` */
    take(owner: string, bytes: number): void {
      expect(owner, bytes)
      held.set(owner, (held.get(owner) ?? 0) + bytes)
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

/** How a body is parsed: here when it is light, which takes a look at longer ones. */
type Parsing = { kind: Kind; isLight(bytes: Buffer): boolean; here(bytes: Buffer): unknown }

const jsonOf = ({ method, path, body }: Taking): Parsing => ({
  kind: { method, path },
  isLight: (bytes) => bytes.length <= LIGHT.bytes && holdsAtMost(LIGHT.values, bytes),
  here: (bytes) => body && parseBody(body, bytes),
})

/** A part of a multipart form takes thirty times what a pair does. */
const formOf = (type: string): Parsing => ({
  kind: { form: type },
  isLight: (bytes) => bytes.length <= LIGHT.bytes && isUrlencoded(type),
  here: (bytes) => readForm(type, new Uint8Array(bytes)),
})

/** Parses a body in its owner's turn: what takes little here, everything else in the parser's thread. */
function createParsing(parser: Parser) {
  const here = createKeyedSemaphore(SMALL_AT_ONCE)
  const inProcess = createKeyedSemaphore(1)
  const there = createKeyedSemaphore(1)

  /** The turn ends with the rest; the body's own request goes on before. */
  const parseThere = (owner: string, kind: Kind, bytes: Buffer): Promise<unknown> => {
    const parsed = Promise.withResolvers<unknown>()
    const turn = async (): Promise<void> => {
      const began = performance.now()
      await parser.parse(kind, bytes).then(parsed.resolve, parsed.reject)
      const rest = Math.min((performance.now() - began) * REST, LONGEST_REST)
      if (bytes.length > HUGE) await sleep(rest)
    }
    inTurn(there, owner, turn).catch(parsed.reject)
    return parsed.promise
  }
  return (owner: string, { kind, isLight, here: parseHere }: Parsing, bytes: Buffer): Promise<unknown> => {
    if (bytes.length > SMALL && !isLight(bytes)) return parseThere(owner, kind, bytes)
    const parse = async (): Promise<unknown> => {
      // Let others work before this owner's next body.
      await setImmediate()
      return parseHere(bytes)
    }
    // Of longer ones one at a time, whose ever they are: else those of many teams would all be parsed in one go.
    return inTurn(here, owner, () => (bytes.length > SMALL ? inTurn(inProcess, 'all', parse) : parse()))
  }
}

/** Makes a process's account of its bodies. */
export function createBodies(parser: Parser, bounds = BOUNDS): Bodies {
  const budget = createBudget(bounds)
  const parse = createParsing(parser)
  const reading = createKeyedSemaphore(LARGE_AT_ONCE)
  const discarding = createKeyedSemaphore(DISCARDED_AT_ONCE)
  return {
    async during(owner, request, work) {
      let held = 0
      const letGo = (): void => {
        budget.give(owner, held)
        held = 0
      }
      const account: Reading = {
        expect: (bytes) => budget.expect(owner, bytes),
        hold(bytes) {
          budget.take(owner, bytes)
          held += bytes
        },
      }
      const read = async (route: Taking): Promise<unknown> => {
        const bytes = await readJsonBytes(request, account)
        const body = await parse(owner, jsonOf(route), bytes)
        return route.body?.withBytes ? route.body.withBytes(body, bytes) : body
      }
      const readFields = async (limit: number): Promise<URLSearchParams> => {
        const bytes = await readBytes(request, { ...account, limit })
        const pairs = await parse(owner, formOf(request.headers['content-type'] ?? ''), bytes)
        return fieldsOf(pairs as Pair[])
      }
      /** In the owner's turn if it is large. */
      const inReading = <T>(read: () => Promise<T>): Promise<T> =>
        isLarge(request) ? inTurn(reading, owner, read) : read()
      /** Reads; what is refused with a rest on its way counts no longer, and is thrown away. */
      const orDiscarded = async <T>(reading: () => Promise<T>): Promise<T> => {
        try {
          return await reading()
        } catch (error) {
          if (!request.complete) {
            letGo()
            await discarding.run('all', () => discard(request), REFUSED_PATIENCE)
          }
          throw error
        }
      }
      try {
        return await work({
          pieces: (bounds, take) => orDiscarded(() => readPieces(request, { ...account, ...bounds }, take)),
          form: (limit) => orDiscarded(() => inReading(() => readFields(limit))),
          bytes: (limit) => orDiscarded(() => readBytes(request, { ...account, limit })),
          parsed: async (route) => {
            if (!route.body) return undefined
            return orDiscarded(() => inReading(() => read(route)))
          },
        })
      } finally {
        letGo()
      }
    },
  }
}
