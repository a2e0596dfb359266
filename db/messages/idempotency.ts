/**
 * Idempotency keys: one that a team has sent is bound to the row that it made, and the same key again is a replay.
 * Promises: keys are looked up once their teams' accounts are locked, so that of two calls with one key at the same
 * moment one makes the row and the other replays it. A refusal binds none. DECISIONS: Idempotency.
 */

/** What each key of a team is stored under, in this transaction too. */
export type StoredKeys<K> = Map<string, K>

/**
 * Looks up the keys that calls name, for the teams whose accounts are locked; no statement where there are none.
 * @param read the rows of these keys. @param keyOf what a row's key is stored under.
 */
export async function readKeys<K, R extends { team_id: string; idempotency_key: string }>(
  batches: ReadonlyMap<string, { stored: StoredKeys<K> }>,
  named: readonly { team_id: string; key: string | null }[],
  {
    read,
    keyOf,
  }: {
    read: (keys: readonly { team_id: string; key: string }[]) => Promise<readonly R[]>
    keyOf: (row: R) => K
  },
): Promise<void> {
  const keys = named.flatMap(({ team_id, key }) =>
    key !== null && batches.has(team_id) ? [{ team_id, key }] : [],
  )
  for (const row of keys.length === 0 ? [] : await read(keys))
    batches.get(row.team_id)?.stored.set(row.idempotency_key, keyOf(row))
}

/** What an item's key is stored under already; undefined for an item that is new. */
export const originalOf = <K>(
  { idempotency_key: key }: { idempotency_key: string | null },
  stored: StoredKeys<K>,
): K | undefined => (key === null ? undefined : stored.get(key))
