/**
 * Writes a message to a connection in slices. After each slice other work in this process runs. Beyond a megabyte there
 * is also a pause for the server and the machine. A message of one slice waits for nothing, and is one write together
 * with the final dot. Written in one piece, a large message would count as sent while most of it is still here.
 */
import { Readable, type Transform } from 'node:stream'
import { setImmediate, setTimeout } from 'node:timers'
import { bytesOf, type Pieces } from '../mail/pieces.ts'

const SLICE_BYTES = 32 * 1024
/** Slices without a pause, and the pause before each other slice in milliseconds: some 30 MB per second. */
const SLICES_WITHOUT_REST = 40
const REST_MS = 1

/**
 * Returns the message as a stream that nodemailer pipes through its dot-stuffing.
 * @param onLast is called before the slice with the final dot is written.
 */
export function inSlices(message: Pieces, onLast: () => void): Readable {
  const slices = toSlices(escaped(message))
  let given = 0
  const give = (stream: Readable, slice: Buffer): void => {
    if (stream.destroyed) return
    if (given === slices.length) onLast()
    stream.push(slice)
  }
  const stream = new Readable({
    // No read-ahead, because a slice waiting here must not count as sent.
    highWaterMark: 0,
    read() {
      const slice = slices[given]
      given += 1
      if (slice === undefined) this.push(null)
      else if (given === 1) give(this, slice)
      else if (given <= SLICES_WITHOUT_REST) setImmediate(give, this, slice)
      else setTimeout(give, REST_MS, this, slice)
    },
  })
  const pipe = stream.pipe.bind(stream)
  return Object.assign(stream, {
    pipe: ((stuffing: Transform, options) => pipe(letPass(stuffing), options)) as typeof pipe,
  })
}

const toSlices = (pieces: Pieces): Buffer[] =>
  pieces.flatMap((piece) => {
    const whole = bytesOf(piece)
    const count = Math.ceil(whole.length / SLICE_BYTES)
    return Array.from({ length: count }, (_, at) => whole.subarray(at * SLICE_BYTES, (at + 1) * SLICE_BYTES))
  })

/**
 * Escapes dots in text and adds the final one. A line break that isn't CRLF becomes it, because a server may read it
 * as one. Lines of base64 have neither.
 */
function escaped(message: Pieces): Pieces {
  const pieces = message.map((piece, at) => {
    if (typeof piece !== 'string') return piece
    const lines = /\r(?!\n)|(?<!\r)\n/.test(piece) ? piece.replace(/\r\n?|\n/g, '\r\n') : piece
    return `${at === 0 && lines.startsWith('.') ? '.' : ''}${lines.replaceAll('\r\n.', '\r\n..')}`
  })
  const last = pieces.at(-1)
  if (typeof last !== 'string') return [...pieces, '\r\n.\r\n']
  return [...pieces.slice(0, -1), `${last}${last.endsWith('\r\n') ? '' : '\r\n'}.\r\n`]
}

/**
 * Skips nodemailer's dot-stuffing, which checks each byte in JavaScript (measured: half of the CPU time of a large
 * message).
 */
const letPass = (stuffing: Transform): Transform =>
  Object.assign(stuffing, {
    _transform: (chunk: Buffer, _encoding: string, done: (error: null, chunk: Buffer) => void) =>
      done(null, chunk),
    _flush: (done: () => void) => done(),
  })
