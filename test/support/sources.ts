/** Reads the text and imports of our source files for the architecture tests. */
import { readdir, readFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'

export const ROOT = join(import.meta.dirname, '..', '..')

/** `values` are imports other than types. `loaded` are those loaded with the file itself. */
export type Source = { file: string; text: string; imports: string[]; values: string[]; loaded: string[] }

/** Returns every source file with its imports: our own files by path from the root, packages by name. */
export async function sources(...folders: string[]): Promise<Source[]> {
  const lists = await Promise.all(
    folders.map(async (folder) => {
      const files = await readdir(join(ROOT, folder), { recursive: true })
      return files.filter((file) => file.endsWith('.ts')).map((file) => join(folder, file))
    }),
  )
  return Promise.all(
    lists.flat().map(async (file) => {
      const text = await readFile(join(ROOT, file), 'utf8')
      const namesIn = (code: string): string[] =>
        [...code.matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)]
          .map(([, name]) => name ?? '')
          .map((name) => (name.startsWith('.') ? relative(ROOT, join(ROOT, dirname(file), name)) : name))
      const code = text.replace(/^import type [^']*'[^']+'/gm, '')
      const loaded = namesIn(code.replace(/\bimport\s*\(/g, ''))
      return { file, text, imports: namesIn(text), values: namesIn(code), loaded }
    }),
  )
}

/** Programs for clients, as text. The rules for our code don't apply to them. */
export const SAMPLES = 'api/docs/samples.ts'

/** A source without its comments. */
export const withoutComments = (text: string): string => text.replace(/\/\*[\s\S]*?\*\/|^[ \t]*\/\/.*$/gm, '')
