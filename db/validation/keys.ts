/** Functions for lists, and for objects whose keys are known. Pure. */

/** Returns the names of an object's properties with their type. The object must have no others. */
export const keysOf = <K extends string>(object: Readonly<Record<K, unknown>>): K[] =>
  Object.keys(object) as K[]

/** Returns the properties of an object with the types of their names. The object must have no others. */
export const entriesOf = <K extends string, V>(object: Readonly<Record<K, V>>): [K, V][] =>
  Object.entries(object) as [K, V][]

/** Leaves out items that are false or null. */
export const compact = <T>(items: readonly (T | false | null)[]): T[] =>
  items.filter((item): item is T => item !== false && item !== null)

/** True if the list contains a value. */
export const isOneOf = <T>(values: readonly T[], value: unknown): value is T =>
  values.some((each) => each === value)

/** Returns these properties of an object, in this order. */
export const pick = <T extends object, K extends keyof T>(object: T, ...keys: readonly K[]): Pick<T, K> =>
  Object.fromEntries(keys.map((key) => [key, object[key]])) as Pick<T, K>

/** Returns an object with a value for each key. */
export const fromKeys = <K extends string, V>(keys: readonly K[], make: (key: K) => V): Record<K, V> =>
  Object.fromEntries(keys.map((key) => [key, make(key)])) as Record<K, V>
