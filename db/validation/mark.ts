/**
 * What a page showed before somebody pressed: its mark, and the refusal where it is not so any more. Pure. Promises:
 * nobody changes or starts what they have not seen.
 */

import { createHash } from 'node:crypto'
import { RequestError } from '../errors.ts'
import { fill } from '../fill.ts'
import { TEXTS } from './texts.ts'

/** The mark of a value that JSON has, the same for equal values with their keys in the same order. */
export const markOf = (value: unknown): string =>
  createHash('sha256').update(JSON.stringify(value)).digest('base64url')

/** @param change a sentence about what has changed since the page was shown. */
export const changedMeanwhile = (change: string): RequestError =>
  new RequestError('invalid_state', fill(TEXTS.changedSince, { change }))

/**
 * @param seen the mark that a page showed; null without one. @throws RequestError invalid_state when it is another now.
 */
export function assertSeen(seen: string | null, now: string, change: string): void {
  if (seen !== null && seen !== now) throw changedMeanwhile(change)
}
