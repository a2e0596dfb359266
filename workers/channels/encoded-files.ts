/**
 * The files of emails that are being sent, encoded for the wire.
 * Promises: a file is read and encoded once for all emails that carry it at about the same time; the memory of all of
 * them stays within a budget, but for a single email that is larger than it, and for those that are not large: these
 * wait for no room, since each takes a chunk at most. To large ones room is given in order of arrival. One chunk is
 * read at a time, of the file that has least left, with rests: large ones take neither the database's connections nor
 * its processors from mail without files, and wait for small ones. What nobody holds stays only as long as its room is
 * not needed; its memory is used again, since collecting it as garbage lags behind by as much again as the budget.
 */
import { setImmediate, setTimeout } from 'node:timers'
import { type FileRef, piecesOfChunks, touchFiles } from '../../db/content/files/files.sql.ts'
import type { Tx } from '../../db/postgres/pool.ts'
import { CHUNK, encodedSize, isLarge } from '../../db/validation/files.ts'
import { writeLines } from './base64-lines.ts'

type Wanted = { sha256: string; size: number; filename: string }

type HeldFiles = {
  encoded: ReadonlyMap<string, readonly Buffer[]>
  /** @param isSent whether a provider has taken the whole: what may still be on its way is never written over. */
  release: (isSent: boolean) => void
}

export type EncodedFiles = {
  /** Looks at emails one after another. @returns whether the files of one could be held beside those before it. */
  look(): (of: Owner, files: readonly Wanted[]) => boolean
  /** Takes files into memory. @throws Error when bytes are gone */
  hold(of: Owner, files: readonly Wanted[], cut: AbortSignal): Promise<HeldFiles>
}

/** Whose files; how many copies of the whole are in memory while they are sent. */
type Owner = { team_id: string; bufferedCopies: number }

type Entry = {
  content: Promise<readonly Buffer[]>
  bytes: number
  holders: number
  /** Whether all that was sent of it has arrived. */
  isSent: boolean
}

const BLOCK_BYTES = encodedSize(CHUNK)
const LINE_BREAK_BYTES = 2

/** How many blocks are taken together. */
const BLOCKS_PER_ALLOCATION = Math.floor((128 * 1024 * 1024) / BLOCK_BYTES)

/**
 * Memory for whole chunks, used again. What the budget is for is taken together, when the first is needed: it is
 * resident only once it is written to, and piece by piece it would have V8 collect its whole heap for every few
 * megabytes.
 */
function createBlocks(budget: number) {
  const free: Buffer[] = []
  let left = Math.floor(budget / BLOCK_BYTES)
  const take = (): Buffer | undefined => {
    if (free.length === 0 && left > 0) {
      const count = Math.min(left, BLOCKS_PER_ALLOCATION)
      const all = Buffer.allocUnsafeSlow(count * BLOCK_BYTES)
      for (let n = 0; n < count; n++) free.push(all.subarray(n * BLOCK_BYTES, (n + 1) * BLOCK_BYTES))
      left -= count
    }
    return free.pop()
  }
  return {
    write(pieces: readonly Buffer<ArrayBuffer>[], isLast: boolean): Buffer {
      const stored = pieces.reduce((sum, { length }) => sum + length, 0)
      // The boundary after the last one begins with a line break.
      const size = encodedSize(stored) - (isLast ? LINE_BREAK_BYTES : 0)
      const block = (size === BLOCK_BYTES ? take() : undefined) ?? Buffer.allocUnsafeSlow(size)
      writeLines(pieces, block)
      // Given back at once: garbage outside of the heap brings the next collection of all of it nearer.
      for (const { buffer } of pieces) buffer.transfer(0)
      return block
    },
    giveBack(content: readonly Buffer[]): void {
      free.push(...content.filter(({ length }) => length === BLOCK_BYTES))
    },
  }
}

type Blocks = ReturnType<typeof createBlocks>

/** While a file has this many chunks left, each read is followed by a rest twice as long; at most, in milliseconds. */
const LONG_FILE_CHUNKS = 5
const MAX_REST_MS = 20

/**
 * Does one piece of work at a time. What has least left goes first: one file is whole before the next is begun. Reading
 * a long file takes a third of the time, so that it leaves most of the database's processors to others.
 */
function createReadTurns() {
  const waiting: { left: number; begin: () => void }[] = []
  let isBusy = false
  const serve = (): void => {
    waiting.sort((one, other) => one.left - other.left)
    const next = waiting.shift()
    isBusy = next !== undefined
    next?.begin()
  }
  return async <T>(left: number, work: () => Promise<T>): Promise<T> => {
    await new Promise<void>((begin) => {
      waiting.push({ left, begin })
      if (!isBusy) serve()
    })
    const began = performance.now()
    try {
      return await work()
    } finally {
      // Whose turn it was may ask for the next one before.
      if (left < LONG_FILE_CHUNKS) setImmediate(serve)
      else setTimeout(serve, Math.min(2 * (performance.now() - began), MAX_REST_MS))
    }
  }
}

type Source = { tx: Tx; blocks: Blocks; inTurn: ReturnType<typeof createReadTurns> }

/** Reads and encodes a content, a chunk at a time. @throws Error when its bytes are gone */
async function encode(
  { tx, blocks, inTurn }: Source,
  ref: FileRef,
  { size, filename }: Wanted,
): Promise<readonly Buffer[]> {
  await touchFiles(tx, [ref])
  const encoded: Buffer[] = []
  const parts = Math.ceil(size / CHUNK)
  for (let part = 0; part < parts; part++) {
    const pieces = await inTurn(parts - part, () => piecesOfChunks(tx, ref, { from: part, count: 1 }))
    if (pieces.length === 0) throw new Error(`the content of ${filename} has been deleted`)
    encoded.push(blocks.write(pieces, part === parts - 1))
  }
  return encoded
}

/** What is in memory. Counted are what somebody holds, and what lies idle. */
function createFileCache(budget: number, blocks: Blocks) {
  const entries = new Map<string, Entry>()
  let held = 0
  let idle = 0
  /** What is held for emails that are not large: no budget bounds it. */
  let unbudgeted = 0
  const forget = (key: string): void => {
    const entry = entries.get(key)
    if (!entry || entry.holders > 0) return
    entries.delete(key)
    idle -= entry.bytes
    if (entry.isSent) entry.content.then(blocks.giveBack, () => {})
  }
  return {
    /** Whether this many more bytes may be held for a large email; a single one always may. */
    fits: (bytes: number, others = 0): boolean => {
      const large = held - unbudgeted + others
      return large <= 0 || large + bytes <= budget
    },
    isHeld: (key: string): boolean => (entries.get(key)?.holders ?? 0) > 0,
    reserve(bytes: number): void {
      held += bytes
    },
    addUnbudgeted(bytes: number): void {
      unbudgeted += bytes
    },
    /** Reserves bytes, and drops what nobody holds until they fit beside the rest. The oldest go first. */
    admit(bytes: number): number {
      for (const key of entries.keys()) {
        if (held + idle + bytes <= budget) break
        forget(key)
      }
      held += bytes
      return bytes
    },
    take(key: string, bytes: number, load: () => Entry['content']): Entry {
      const known = entries.get(key)
      const entry = known ?? { content: load(), bytes, holders: 0, isSent: true }
      if (known && known.holders === 0) idle -= bytes
      if (entry.holders === 0) held += bytes
      entry.holders += 1
      entries.set(key, entry)
      return entry
    },
    letGo(key: string, entry: Entry, { isSent, isBroken }: { isSent: boolean; isBroken: boolean }): void {
      entry.isSent &&= isSent
      entry.holders -= 1
      if (entry.holders > 0) return
      held -= entry.bytes
      idle += entry.bytes
      // To the end: it is the youngest now.
      entries.delete(key)
      entries.set(key, entry)
      if (isBroken) forget(key)
    },
  }
}

type FileCache = ReturnType<typeof createFileCache>

/** The queue of those who wait for room. */
function createRoomQueue(cache: FileCache) {
  const queue: (() => boolean)[] = []
  const serve = (): void => {
    while (queue[0]?.()) queue.shift()
  }
  return {
    serve,
    isEmpty: () => queue.length === 0,
    /** Reserves as many bytes as it takes once it is its turn, behind those who wait already. @returns how many. */
    admit: (bytesOf: () => number, cut: AbortSignal): Promise<number> =>
      new Promise((resolve, reject) => {
        const onCut = (): void => serve()
        queue.push(() => {
          const bytes = bytesOf()
          if (!cut.aborted && !cache.fits(bytes)) return false
          cut.removeEventListener('abort', onCut)
          if (cut.aborted) {
            reject(new Error('the worker had to end'))
            return true
          }
          resolve(cache.admit(bytes))
          return true
        })
        cut.addEventListener('abort', onCut, { once: true })
        serve()
      }),
  }
}

const encodedSum = (files: readonly Wanted[]): number =>
  files.reduce((sum, { size }) => sum + encodedSize(size), 0)

/** The contents of an email, each once. */
const distinctOf = (teamId: string, files: readonly Wanted[]): Map<string, Wanted> =>
  new Map(files.map((file) => [`${teamId}/${file.sha256}`, file]))

/** Makes a process's store. @param budget in bytes. */
export function createEncodedFiles(tx: Tx, budget: number): EncodedFiles {
  const blocks = createBlocks(budget)
  const source = { tx, blocks, inTurn: createReadTurns() }
  const cache = createFileCache(budget, blocks)
  const roomQueue = createRoomQueue(cache)
  return {
    look() {
      const seen = new Set<string>()
      let wanted = 0
      return ({ team_id, bufferedCopies }, files) => {
        if (!isLarge(files)) return true
        const fresh = [...distinctOf(team_id, files)].filter(([key]) => !seen.has(key) && !cache.isHeld(key))
        const bytes = encodedSum(fresh.map(([, file]) => file)) + encodedSum(files) * bufferedCopies
        if (!roomQueue.isEmpty() || !cache.fits(bytes, wanted)) return false
        wanted += bytes
        for (const [key] of fresh) seen.add(key)
        return true
      }
    },
    async hold({ team_id, bufferedCopies }, files, cut) {
      const distinct = distinctOf(team_id, files)
      const extra = encodedSum(files) * bufferedCopies
      const isFresh = ([key]: [string, Wanted]): boolean => !cache.isHeld(key)
      const bytesOf = (): number => encodedSum([...distinct].filter(isFresh).map(([, file]) => file)) + extra
      const unbudgeted = isLarge(files) ? 0 : bytesOf()
      cache.addUnbudgeted(unbudgeted)
      const reserved = isLarge(files) ? await roomQueue.admit(bytesOf, cut) : cache.admit(unbudgeted)
      // Taken below, in this turn of the event loop.
      cache.reserve(extra - reserved)
      const taken = [...distinct].map(([key, file]) => {
        const { sha256, size } = file
        const load = () => encode(source, { team_id, sha256 }, file)
        return { key, entry: cache.take(key, encodedSize(size), load), sha256 }
      })
      // What waits for the same content needs no more room now.
      roomQueue.serve()
      const release = (isSent: boolean, isBroken = false): void => {
        cache.addUnbudgeted(-unbudgeted)
        cache.reserve(-extra)
        for (const { key, entry } of taken) cache.letGo(key, entry, { isSent, isBroken })
        roomQueue.serve()
      }
      try {
        const contents = await Promise.all(
          taken.map(async ({ sha256, entry }) => [sha256, await entry.content] as const),
        )
        return { encoded: new Map(contents), release: (isSent) => release(isSent) }
      } catch (error) {
        await Promise.allSettled(taken.map(({ entry }) => entry.content))
        release(true, true)
        throw error
      }
    },
  }
}
