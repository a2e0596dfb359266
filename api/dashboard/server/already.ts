/** Errors about an object that is missing or has changed, such as after Back. confirmation.ts shows their message. */
import { RequestError } from '../../../db/errors.ts'
import { fill } from '../../../db/fill.ts'
import { assertSeen } from '../../../db/validation/mark.ts'
import { TEXTS } from '../texts.ts'

/** @param state the current state of the object, such as `revoked`. */
export const already = (what: string, state: string): RequestError =>
  new RequestError('invalid_state', fill(TEXTS.alreadySo, { what, state }))

/** @param seen the value on the page, or null. @throws RequestError if it has changed since. */
export function assertUnreplaced(what: string, seen: string | null, now: string): void {
  assertSeen(seen, now, fill(TEXTS.replacedSince, { what }))
}

export const noneLeft = (): RequestError => new RequestError('invalid_state', TEXTS.noneLeft)

/** Returns an object that was searched. @throws RequestError not_found if it is missing. */
export function requireFound<T>(found: T | null | undefined, text: string): T {
  if (found == null) throw new RequestError('not_found', text)
  return found
}
