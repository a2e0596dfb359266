/** Functions for objects whose keys are known. Pure. */

/** Returns the names of an object's properties with their type. The object must have no others. */
export const keysOf = <K extends string>(object: Readonly<Record<K, unknown>>): K[] =>
  Object.keys(object) as K[]

/** Returns an object with a value for each key. */
export const fromKeys = <K extends string, V>(keys: readonly K[], make: (key: K) => V): Record<K, V> =>
  Object.fromEntries(keys.map((key) => [key, make(key)])) as Record<K, V>
