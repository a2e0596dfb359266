/**
 * Idempotency keys: a key is bound to the row that it created, and the same key again is a replay. Keys are looked up
 * after the teams' accounts are locked, so that concurrent calls can't both create a row. An error binds no key.
 * DECISIONS: Idempotency.
 */

/** The stored keys of a team, including those of this transaction. */
export type StoredKeys<K> = Map<string, K>

/**
 * Looks up the keys in calls of teams whose accounts are locked. Without keys, no statement runs.
 * @param read returns the rows of these keys. @param keyOf returns the value for a row's key.
 */
export async function readKeys<K, R extends { team_id: string; idempotency_key: string }>(
  batches: ReadonlyMap<string, { stored: StoredKeys<K> }>,
  named: readonly { team_id: string; key: string | null }[],
  rows: {
    read: (keys: readonly { team_id: string; key: string }[]) => Promise<readonly R[]>
    keyOf: (row: R) => K
  },
): Promise<void> {
  const keys = named.flatMap(({ team_id, key }) =>
    key !== null && batches.has(team_id) ? [{ team_id, key }] : [],
  )
  for (const row of keys.length === 0 ? [] : await rows.read(keys))
    batches.get(row.team_id)?.stored.set(row.idempotency_key, rows.keyOf(row))
}

/** Returns the value for an item's key, or undefined if the item is new. */
export const findOriginal = <K>(
  { idempotency_key: key }: { idempotency_key: string | null },
  stored: StoredKeys<K>,
): K | undefined => (key === null ? undefined : stored.get(key))
