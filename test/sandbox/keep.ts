/**
 * Stores the sandbox's messages in a directory, so that the inbox survives a restart. There is one file per
 * message, and unreadable files are skipped. Writing never delays a response; `settled` waits for it.
 * Messages are opaque text.
 */
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

export type Keep = {
  /** Returns the stored messages, oldest first. */
  load(): Promise<string[]>
  /** Stores a message under a name that sorts by its arrival; again to replace it. */
  put(name: string, text: string): void
  remove(name: string): void
  /** Resolves once everything so far is on disk. */
  settled(): Promise<void>
}

/** Keeps nothing: for tests, and where no directory is named. */
export const keepNothing: Keep = {
  load: async () => [],
  put: () => {},
  remove: () => {},
  settled: async () => {},
}

/** Keeps messages in a directory, which is made if it is missing. */
export async function keepIn(directory: string): Promise<Keep> {
  await mkdir(directory, { recursive: true, mode: 0o700 })
  let work = Promise.resolve()
  const then = (next: () => Promise<unknown>): void => {
    // A full disk costs the inbox its memory, and the service nothing.
    work = work.then(next).then(
      () => {},
      () => {},
    )
  }
  const file = (name: string): string => join(directory, `${name.replaceAll(/[^\w.-]/g, '_')}.json`)
  return {
    load: async () => {
      const names = (await readdir(directory)).filter((name) => name.endsWith('.json')).sort()
      const texts = names.map((name) => readFile(join(directory, name), 'utf8').catch(() => ''))
      return (await Promise.all(texts)).filter((text) => text !== '')
    },
    put: (name, text) => then(() => writeFile(file(name), text, { mode: 0o600 })),
    remove: (name) => then(() => rm(file(name), { force: true })),
    settled: () => work,
  }
}
