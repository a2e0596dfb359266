/**
 * What a page showed before somebody pressed: its mark, and the refusal where it is not so any more. Pure. Promises:
 * nobody changes or starts what they have not seen.
 */
import { createHash } from 'node:crypto'
import { RequestError } from '../errors.ts'

/** The mark of a value that JSON has, the same for equal values with their keys in the same order. */
export const markOf = (value: unknown): string =>
  createHash('sha256').update(JSON.stringify(value)).digest('base64url')

/** @param words what is not as it was shown, and since when. */
export const changedMeanwhile = (words: string): RequestError =>
  new RequestError('invalid_state', `${words}: look at it, then decide again`)

/**
 * @param seen the mark that a page showed; null without one. @throws RequestError invalid_state when it is another now.
 */
export function assertSeen(seen: string | null, now: string, words: string): void {
  if (seen !== null && seen !== now) throw changedMeanwhile(words)
}
