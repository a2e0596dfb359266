/** Represents a message as pieces, so that its files are never copied. Pure. */

/** In order: 7-bit text, which comes first and last, and lines of base64. */
export type Pieces = readonly (string | Buffer)[]

export const bytesOf = (piece: string | Buffer): Buffer =>
  typeof piece === 'string' ? Buffer.from(piece, 'latin1') : piece

export const sizeOf = (message: Pieces): number => message.reduce((sum, { length }) => sum + length, 0)
