/** Marks of what a page shows, by which it is known later whether that is still so. Pure; must not be read back. */
import { createHash } from 'node:crypto'

/** The mark of a value that JSON has, the same for equal values with their keys in the same order. */
export const markOf = (value: unknown): string =>
  createHash('sha256').update(JSON.stringify(value)).digest('base64url')
