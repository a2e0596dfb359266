/** Converts between UUIDv7 IDs and their times, so that a time range is a range of the primary key. */
import { v7 as uuidv7 } from 'uuid'
import { isUuid } from './strings.ts'

/** Returns a bound: IDs of this time or later are at or above it, and earlier IDs are below it. */
export const firstIdAt = (at: Date): string =>
  uuidv7({ msecs: Math.max(0, at.getTime()), seq: 0, random: new Uint8Array(16) })

/** Returns the time in an ID, in milliseconds. */
export const timeOfId = (id: string): number => Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)

/**
 * Returns the possible meanings of a copied ID. A Message-ID has angle brackets, and contains the row's ID before its
 * `@`.
 */
export function spellingsOfId(given: string): { texts: string[]; uuids: string[] } {
  const bare = given.replace(/^<([^<>]*)>$/, '$1')
  const at = bare.lastIndexOf('@')
  const texts = [...new Set([given, bare, ...(at > 0 ? [bare.slice(0, at)] : [])])]
  return { texts, uuids: texts.filter(isUuid).map((text) => text.toLowerCase()) }
}
