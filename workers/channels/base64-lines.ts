/** Encodes bytes as lines of base64 (RFC 2045 §6.8) into existing memory. Pure. */

const LINE_CHARACTERS = 76
const LINE_BYTES = LINE_CHARACTERS + 2
const CR = 0x0d
const LF = 0x0a

/**
 * Writes bytes as lines, first to the end of the block, then each to its position. All pieces except the last consist
 * of complete lines.
 * @param to has the exact size of the lines, with or without a line break after the last one.
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
