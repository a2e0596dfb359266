/** Detects changes after a page was shown, so that users don't confirm something they haven't seen. */

import { createHash } from 'node:crypto'
import { type RequestError, requestError } from '../errors.ts'
import { TEXTS } from './texts.ts'

/** A hash of a JSON value. Equal values with their keys in the same order have the same hash. */
export const markOf = (value: unknown): string =>
  createHash('sha256').update(JSON.stringify(value)).digest('base64url')

/** @param change a sentence about the change since the page was shown. */
export const changedMeanwhile = (change: string): RequestError =>
  requestError('invalid_state', TEXTS.changedSince, { change })

/**
 * @param seen the hash that the page was shown with, or null. @throws RequestError invalid_state if it has changed.
 */
export function assertSeen(seen: string | null, now: string, change: string): void {
  if (seen !== null && seen !== now) throw changedMeanwhile(change)
}
