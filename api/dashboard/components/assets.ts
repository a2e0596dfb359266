/** Loads the stylesheet and the script. Their paths contain a hash of the content, so they can be cached forever. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const TYPES = { 'dashboard.css': 'text/css', 'dashboard.js': 'text/javascript' } as const
type Name = keyof typeof TYPES

type Asset = { type: string; bytes: Buffer }

/** Paths of the assets after /dashboard, and assets by path. */
export type Assets = { paths: Record<Name, string>; byPath: ReadonlyMap<string, Asset> }

export function readAssets(): Assets {
  const byPath = new Map<string, Asset>()
  const read = (name: Name): string => {
    const bytes = readFileSync(join(import.meta.dirname, 'assets', name))
    const digest = createHash('sha256').update(bytes).digest('hex').slice(0, 16)
    const path = `/assets/${digest}/${name}`
    byPath.set(path, { type: `${TYPES[name]}; charset=utf-8`, bytes })
    return path
  }
  return { paths: { 'dashboard.css': read('dashboard.css'), 'dashboard.js': read('dashboard.js') }, byPath }
}
