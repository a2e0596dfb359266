/**
 * Bytes as lines of base64 (RFC 2045 §6.8), written into memory that is there already. Pure.
 * Promises: the strings that they become on the way are garbage before anything else runs.
 */

/** A line, without its break and with it. */
const LINE_CHARACTERS = 76
const LINE_BYTES = LINE_CHARACTERS + 2
const CR = 0x0d
const LF = 0x0a

/**
 * Writes bytes in lines: to the end of the block as they come, then each forward to its place. All pieces but the last
 * are whole lines. @param to as large as the lines become, with a break after the last one or without.
 */
export function writeLines(pieces: readonly Buffer[], to: Buffer): void {
  let from = to.length - pieces.reduce((sum, { length }) => sum + 4 * Math.ceil(length / 3), 0)
  let end = from
  for (const piece of pieces) end += to.write(piece.toString('base64'), end, 'latin1')
  for (let at = 0; at + LINE_BYTES <= to.length; at += LINE_BYTES, from += LINE_CHARACTERS) {
    to.copyWithin(at, from, from + LINE_CHARACTERS)
    to[at + LINE_CHARACTERS] = CR
    to[at + LINE_CHARACTERS + 1] = LF
  }
}
