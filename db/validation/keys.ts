/** Returns the names of an object's properties with their type. The object must have no others. Pure. */
export const keysOf = <K extends string>(object: Readonly<Record<K, unknown>>): K[] =>
  Object.keys(object) as K[]
