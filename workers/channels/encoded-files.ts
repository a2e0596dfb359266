/**
 * Keeps the files of emails that are being sent, encoded for the wire. A file is read and encoded once for all emails
 * that carry it at about the same time. A budget limits the memory of all files, with two exceptions: a single email
 * that is larger than the budget, and small emails, which use at most one chunk each. Large emails get memory in
 * order of arrival. One chunk is read at a time, from the file with the least left, with pauses between, so that
 * large files wait for small ones. Unused files stay until their memory is needed. Memory is reused, because garbage
 * collection would lag behind by as much as the budget.
 */
import { setImmediate, setTimeout } from 'node:timers'
import { type FileRef, piecesOfChunks, touchFiles } from '../../db/content/files/files.sql.ts'
import type { Tx } from '../../db/postgres/pool.ts'
import { CHUNK, encodedSize, isLarge } from '../../db/validation/files.ts'
import { writeLines } from './base64-lines.ts'

type Wanted = { sha256: string; size: number; filename: string }

type HeldFiles = {
  encoded: ReadonlyMap<string, readonly Buffer[]>
  /** @param isSent is true if a provider has received the complete email. Bytes in transit are never overwritten. */
  release: (isSent: boolean) => void
}

export type EncodedFiles = {
  /** Checks emails in sequence. @returns true if an email's files fit in addition to those before it. */
  look(): (of: Owner, files: readonly Wanted[]) => boolean
  /** Loads files into memory. @throws Error if bytes are deleted */
  hold(of: Owner, files: readonly Wanted[], cut: AbortSignal): Promise<HeldFiles>
}

type Owner = { team_id: string; bufferedCopies: number }

type Entry = {
  content: Promise<readonly Buffer[]>
  bytes: number
  holders: number
  /** True if everything that was sent of it has arrived. */
  isSent: boolean
}

const BLOCK_BYTES = encodedSize(CHUNK)
const LINE_BREAK_BYTES = 2

/** The number of blocks that are allocated together. */
const BLOCKS_PER_ALLOCATION = Math.floor((128 * 1024 * 1024) / BLOCK_BYTES)

/**
 * Reuses memory in units of one chunk. Up to 128 MiB of the budget are allocated at once, and become resident only
 * when written to. Allocating chunk by chunk would make V8 collect its heap every few megabytes.
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
      // The boundary after the last one starts with a line break.
      const size = encodedSize(stored) - (isLast ? LINE_BREAK_BYTES : 0)
      const block = (size === BLOCK_BYTES ? take() : undefined) ?? Buffer.allocUnsafeSlow(size)
      writeLines(pieces, block)
      // Freed at once, because garbage outside the heap triggers full collections.
      for (const { buffer } of pieces) buffer.transfer(0)
      return block
    },
    returnToQueue(content: readonly Buffer[]): void {
      free.push(...content.filter(({ length }) => length === BLOCK_BYTES))
    },
  }
}

type Blocks = ReturnType<typeof createBlocks>

/**
 * A file with at least this many chunks left pauses for twice the duration of each read, at most this many
 * milliseconds.
 */
const LONG_FILE_CHUNKS = 5
const MAX_REST_MS = 20

/** Runs the work of the file with the least left until it is complete. A long file is read a third of the time. */
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
      // Lets the previous owner of the turn request the next one first.
      if (left < LONG_FILE_CHUNKS) setImmediate(serve)
      else setTimeout(serve, Math.min(2 * (performance.now() - began), MAX_REST_MS))
    }
  }
}

type Source = { tx: Tx; blocks: Blocks; inTurn: ReturnType<typeof createReadTurns> }

/** Reads and encodes a content, one chunk at a time. @throws Error if its bytes are deleted */
async function encode({ tx, blocks, inTurn }: Source, ref: FileRef, { size, filename }: Wanted) {
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

function createFileCache(budget: number, blocks: Blocks) {
  const entries = new Map<string, Entry>()
  let held = 0
  let idle = 0
  /** Bytes in use for small emails. No budget limits them. */
  let unbudgeted = 0
  const evict = (key: string): void => {
    const entry = entries.get(key)
    if (!entry || entry.holders > 0) return
    entries.delete(key)
    idle -= entry.bytes
    if (entry.isSent) entry.content.then(blocks.returnToQueue, () => {})
  }
  return {
    /** True if this many more bytes fit for a large email. A single one always fits. */
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
    /** Reserves bytes, and drops the oldest unused files until they fit. */
    admit(bytes: number): number {
      for (const key of entries.keys()) {
        if (held + idle + bytes <= budget) break
        evict(key)
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
    release(key: string, entry: Entry, { isSent, isBroken }: { isSent: boolean; isBroken: boolean }): void {
      entry.isSent &&= isSent
      entry.holders -= 1
      if (entry.holders > 0) return
      held -= entry.bytes
      idle += entry.bytes
      entries.delete(key)
      entries.set(key, entry)
      if (isBroken) evict(key)
    },
  }
}

type FileCache = ReturnType<typeof createFileCache>

function createRoomQueue(cache: FileCache) {
  const queue: (() => boolean)[] = []
  const serve = (): void => {
    while (queue[0]?.()) queue.shift()
  }
  return {
    serve,
    isEmpty: () => queue.length === 0,
    /** Reserves the bytes once its turn comes, after those already waiting. @returns the number of bytes. */
    admit: (bytesOf: () => number, cut: AbortSignal): Promise<number> =>
      new Promise((resolve, reject) => {
        const onCut = (): void => serve()
        queue.push(() => {
          const bytes = bytesOf()
          if (!cut.aborted && !cache.fits(bytes)) return false
          cut.removeEventListener('abort', onCut)
          if (cut.aborted) {
            reject(new Error('the worker shut down'))
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

const distinctOf = (teamId: string, files: readonly Wanted[]): Map<string, Wanted> =>
  new Map(files.map((file) => [`${teamId}/${file.sha256}`, file]))

/** Creates the file store of a process. @param budget in bytes. */
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
      // The files are counted below instead, in this turn of the event loop.
      cache.reserve(extra - reserved)
      const taken = [...distinct].map(([key, file]) => {
        const { sha256, size } = file
        const load = () => encode(source, { team_id, sha256 }, file)
        return { key, entry: cache.take(key, encodedSize(size), load), sha256 }
      })
      // Emails that wait for the same content now need no memory for it.
      roomQueue.serve()
      const release = (isSent: boolean, isBroken = false): void => {
        cache.addUnbudgeted(-unbudgeted)
        cache.reserve(-extra)
        for (const { key, entry } of taken) cache.release(key, entry, { isSent, isBroken })
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
