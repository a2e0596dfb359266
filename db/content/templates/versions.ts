/**
 * Caches compiled template versions, which are immutable, limited by bytes. One query loads all versions that are
 * missing.
 */
import type { Tx } from '../../postgres/pool.ts'
import { compileHtml } from '../../validation/attributes.ts'
import { compileTemplate, type Template } from '../../validation/slots.ts'
import { type VersionRow, versionsByIds } from './templates.sql.ts'

/** A compiled version. `text` is null without a plain-text part. */
export type CompiledVersion = { html: Template; text: Template | null; list_unsubscribe: boolean }

export const compileVersion = (
  row: Pick<VersionRow, 'html' | 'body_text' | 'list_unsubscribe' | 'keeps_equals'>,
): CompiledVersion => ({
  html: row.keeps_equals ? compileHtml(row.html) : compileTemplate(row.html),
  text: row.body_text === '' ? null : compileTemplate(row.body_text),
  list_unsubscribe: row.list_unsubscribe,
})

type VersionRef = { team_id: string; id: string }

/** Returns compiled versions by ID. IDs that don't exist are missing in the map. */
export type Versions = (tx: Tx, refs: readonly VersionRef[]) => Promise<Map<string, CompiledVersion>>

/** The limit of the cache, in bytes of template source. */
const MAX_KEPT = 32 * 1024 * 1024

/** Creates the cache of a process. The oldest entries are removed first. */
export function createVersions(): Versions {
  const kept = new Map<string, { compiled: CompiledVersion; bytes: number }>()
  let size = 0

  const keep = (key: string, compiled: CompiledVersion, bytes: number): void => {
    kept.set(key, { compiled, bytes })
    size += bytes
    // A Map iterates in insertion order, so the first one is the oldest.
    for (const [oldest, { bytes: freed }] of kept) {
      if (size <= MAX_KEPT || oldest === key) break
      kept.delete(oldest)
      size -= freed
    }
  }

  return async (tx, refs) => {
    const wanted = new Map(refs.map((ref) => [`${ref.team_id}/${ref.id}`, ref]))
    const found = new Map<string, CompiledVersion>()
    const missing: VersionRef[] = []
    for (const [key, ref] of wanted) {
      const known = kept.get(key)
      if (known) found.set(ref.id, known.compiled)
      else missing.push(ref)
    }
    if (missing.length > 0) {
      for (const row of await versionsByIds(tx, missing)) {
        const compiled = compileVersion(row)
        found.set(row.id, compiled)
        keep(`${row.team_id}/${row.id}`, compiled, row.html.length + row.body_text.length)
      }
    }
    return found
  }
}
