/** A message in pieces, so that the files in it are never copied: what it is made of, and how much that is. Pure. */

/** In order: 7-bit text, which begins and ends it, and lines of base64. */
export type Pieces = readonly (string | Buffer)[]

/** A piece as it travels. */
export const bytesOf = (piece: string | Buffer): Buffer =>
  typeof piece === 'string' ? Buffer.from(piece, 'latin1') : piece

export const sizeOf = (message: Pieces): number => message.reduce((sum, { length }) => sum + length, 0)
