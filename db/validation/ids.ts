/**
 * What ids say: UUIDv7, whose time is that of what they name, so that a stretch of time is a stretch of the primary
 * key. db/process/ids.ts makes them.
 */
import { v7 as uuidv7 } from 'uuid'
import { isUuid } from './strings.ts'

/** No id of this time or later is below it, and each earlier one is: a bound to compare with. */
export const firstIdAt = (at: Date): string =>
  uuidv7({ msecs: Math.max(0, at.getTime()), seq: 0, random: new Uint8Array(16) })

/** The time that an id says, in milliseconds. */
export const timeOfId = (id: string): number => Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)

/** What an id may stand for as people copy it: a Message-ID has angle brackets, and the row's id before its `@`. */
export function spellingsOfId(given: string): { texts: string[]; uuids: string[] } {
  const bare = given.replace(/^<([^<>]*)>$/, '$1')
  const at = bare.lastIndexOf('@')
  const texts = [...new Set([given, bare, ...(at > 0 ? [bare.slice(0, at)] : [])])]
  return { texts, uuids: texts.filter(isUuid).map((text) => text.toLowerCase()) }
}
