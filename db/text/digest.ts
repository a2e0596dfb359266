/** A short digest of a text, for keys that only have to tell texts apart. Pure. */
import { createHash } from 'node:crypto'

/** 16 bytes of SHA-256, as hexadecimal digits. */
export const digest16 = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 32)
