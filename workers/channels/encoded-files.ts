/**
 * The files of emails that are being sent, encoded for the wire.
 * Promises: a file is read and encoded once for all emails that carry it at about the same time; the memory of all of
 * them stays within a budget, but for a single email that is larger than it; room is given in order of
 * arrival. What nobody holds stays only as long as its room is not needed.
 */
import { encodedChunksOf, type FileRef, touchFiles } from '../../db/content/files/files.sql.ts'
import type { Tx } from '../../db/postgres/pool.ts'
import { encodedSize } from '../../db/text/files.ts'

type Wanted = { sha256: string; size: number; filename: string }

type HeldFiles = { encoded: ReadonlyMap<string, readonly Buffer[]>; release: () => void }

export type EncodedFiles = {
  /** Whether this many more bytes could be held now, beside `others` that are to be. */
  hasRoom(bytes: number, others: number): boolean
  /** Takes files into memory. @param copies of the whole that sending makes. @throws Error when bytes are gone */
  hold(
    of: { team_id: string; copies: number },
    files: readonly Wanted[],
    cut: AbortSignal,
  ): Promise<HeldFiles>
}

type Entry = { content: Promise<readonly Buffer[]>; bytes: number; holders: number }

/** Chunks of one statement: about a mebibyte. */
const AT_ONCE = 3

/** Reads and encodes a content. @throws Error when its bytes are gone */
async function encode(tx: Tx, ref: FileRef, { size, filename }: Wanted): Promise<readonly Buffer[]> {
  await touchFiles(tx, [ref])
  const encoded: Buffer[] = []
  const missing = encodedSize(size) - (size % 57 === 0 ? 0 : 2)
  let read = 0
  for (let from = 0; read < missing; from += AT_ONCE) {
    const chunks = await encodedChunksOf(tx, ref, { from, count: AT_ONCE })
    if (chunks.length === 0) throw new Error(`the bytes of ${filename} are gone`)
    for (const text of chunks) {
      read += text.length
      // The boundary after it begins with a line break.
      const isLast = read >= missing
      encoded.push(Buffer.from(isLast ? text.trimEnd() : text, 'latin1'))
    }
  }
  return encoded
}

/** What is in memory. Counted are what somebody holds, and what lies idle. */
function createStock(budget: number) {
  const entries = new Map<string, Entry>()
  let held = 0
  let idle = 0
  const forget = (key: string): void => {
    const entry = entries.get(key)
    if (!entry || entry.holders > 0) return
    entries.delete(key)
    idle -= entry.bytes
  }
  return {
    /** Whether this many more bytes may be held; a single file always may. */
    fits: (bytes: number, others = 0): boolean => held + others === 0 || held + others + bytes <= budget,
    reserve(bytes: number): void {
      held += bytes
    },
    /** Drops what nobody holds until this many bytes fit beside the rest. The oldest go first. */
    makeRoom(bytes: number): void {
      for (const key of entries.keys()) {
        if (held + idle + bytes <= budget) return
        forget(key)
      }
    },
    take(key: string, bytes: number, load: () => Entry['content']): Entry {
      const known = entries.get(key)
      const entry = known ?? { content: load(), bytes, holders: 0 }
      if (known && known.holders === 0) idle -= bytes
      if (entry.holders === 0) held += bytes
      entry.holders += 1
      entries.set(key, entry)
      return entry
    },
    letGo(key: string, entry: Entry, isBroken: boolean): void {
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

type Stock = ReturnType<typeof createStock>

/** The line of those who wait for room. */
function createLine(stock: Stock) {
  const queue: (() => boolean)[] = []
  const serve = (): void => {
    while (queue[0]?.()) queue.shift()
  }
  return {
    serve,
    isEmpty: () => queue.length === 0,
    /** Reserves this many bytes, behind those who wait already. */
    admit: (bytes: number, cut: AbortSignal): Promise<void> =>
      new Promise((resolve, reject) => {
        const onCut = (): void => serve()
        queue.push(() => {
          if (!cut.aborted && !stock.fits(bytes)) return false
          cut.removeEventListener('abort', onCut)
          if (cut.aborted) {
            reject(new Error('the worker had to end'))
            return true
          }
          stock.makeRoom(bytes)
          stock.reserve(bytes)
          resolve()
          return true
        })
        cut.addEventListener('abort', onCut, { once: true })
        serve()
      }),
  }
}

/** Makes a process's store. @param budget in bytes. */
export function createEncodedFiles(tx: Tx, budget: number): EncodedFiles {
  const stock = createStock(budget)
  const line = createLine(stock)
  return {
    hasRoom: (bytes, others) => line.isEmpty() && stock.fits(bytes, others),
    async hold({ team_id, copies }, files, cut) {
      const distinct = new Map(files.map((file) => [`${team_id}/${file.sha256}`, file]))
      const bytes = [...distinct.values()].reduce((sum, { size }) => sum + encodedSize(size), 0)
      const extra = files.reduce((sum, { size }) => sum + encodedSize(size), 0) * copies
      await line.admit(bytes + extra, cut)
      // Taken below, in this turn of the event loop.
      stock.reserve(-bytes)
      const taken = [...distinct].map(([key, file]) => {
        const { sha256, size } = file
        const load = () => encode(tx, { team_id, sha256 }, file)
        return { key, entry: stock.take(key, encodedSize(size), load), sha256 }
      })
      const release = (isBroken = false): void => {
        stock.reserve(-extra)
        for (const { key, entry } of taken) stock.letGo(key, entry, isBroken)
        line.serve()
      }
      try {
        const contents = await Promise.all(
          taken.map(async ({ sha256, entry }) => [sha256, await entry.content] as const),
        )
        return { encoded: new Map(contents), release: () => release() }
      } catch (error) {
        await Promise.allSettled(taken.map(({ entry }) => entry.content))
        release(true)
        throw error
      }
    },
  }
}
