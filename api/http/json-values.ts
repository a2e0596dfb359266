/**
 * Says how many values a JSON text holds, without parsing it: that, and not its length, is what parsing it takes.
 * Promises: one pass over the bytes, which ends with the limit; any bytes will do, JSON or not. Pure.
 */

const [QUOTE, BACKSLASH] = [0x22, 0x5c]
/** Each value but the first is led in by one of these: a comma, a colon, or the bracket that it is the first in. */
const LEADS = new Set([...',:[{'].map((lead) => lead.charCodeAt(0)))
const isLead = Uint8Array.from({ length: 256 }, (_, byte) => Number(LEADS.has(byte)))

/** Whether it holds at most that many values and keys. What is empty counts, too. */
export function holdsAtMost(limit: number, bytes: Uint8Array): boolean {
  let values = 1
  let inString = false
  for (let at = 0; at < bytes.length && values <= limit; at++) {
    const byte = bytes[at] ?? 0
    if (inString && byte === BACKSLASH) at++
    else if (byte === QUOTE) inString = !inString
    else if (!inString) values += isLead[byte] ?? 0
  }
  return values <= limit
}
