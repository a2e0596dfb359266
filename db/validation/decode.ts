/**
 * Decodes text files of unknown encoding: UTF-8 and UTF-16, with or without a byte order mark, and otherwise
 * Windows-1252.
 */
import { utf8Text } from './strings.ts'

const decoded = (encoding: string, bytes: Uint8Array): string => new TextDecoder(encoding).decode(bytes)

/** In most texts every second byte of UTF-16 is zero. This many bytes are searched for these zeros. */
const SAMPLE_BYTES = 4_096

function utf16Of(bytes: Uint8Array): 'utf-16le' | 'utf-16be' | null {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le'
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return 'utf-16be'
  const zeros: [number, number] = [0, 0]
  const start = bytes.subarray(0, SAMPLE_BYTES)
  for (const [at, byte] of start.entries()) if (byte === 0) zeros[at % 2 === 0 ? 0 : 1] += 1
  const many = start.length / 4
  if (zeros[1] > many && zeros[0] === 0) return 'utf-16le'
  return zeros[0] > many && zeros[1] === 0 ? 'utf-16be' : null
}

/** Returns the text of a file without its byte order mark, and the detected encoding. */
export function textOfFile(bytes: Uint8Array): { text: string; encoding: string } {
  const utf16 = utf16Of(bytes)
  if (utf16) return { text: decoded(utf16, bytes), encoding: 'UTF-16' }
  const text = utf8Text(bytes)
  return text === null
    ? { text: decoded('windows-1252', bytes), encoding: 'Windows-1252' }
    : { text, encoding: 'UTF-8' }
}
