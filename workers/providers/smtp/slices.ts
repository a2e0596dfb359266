/**
 * Writes a message to a connection in slices. After each slice other work in this process runs, so a large
 * message to a fast server delays no other. Beyond a megabyte there is also a pause for the server and the
 * machine. A message of one slice waits for nothing. Written in one piece, a message would count as sent
 * while most of it is still here.
 */
import { Readable, type Transform } from 'node:stream'
import { setImmediate, setTimeout } from 'node:timers'
import { bytesOf, type Pieces } from '../mail/pieces.ts'

const SLICE_BYTES = 32 * 1024
/** Slices without a pause, and the pause before each other slice in milliseconds: some 30 MB per second. */
const SLICES_WITHOUT_REST = 40
const REST_MS = 1

/** Returns the message as a stream that nodemailer pipes through its dot-stuffing. */
export function inSlices(message: Pieces): Readable {
  const slices = slicesOf(message)
  const files = new WeakSet<Buffer>()
  let given = 0
  const give = (stream: Readable, { bytes, isFile }: Slice): void => {
    if (isFile) files.add(bytes)
    stream.push(bytes)
  }
  const stream = new Readable({
    highWaterMark: SLICE_BYTES,
    read() {
      const slice = slices.next().value
      if (slice === undefined) this.push(null)
      else if (given === 0) give(this, slice)
      else if (given < SLICES_WITHOUT_REST) setImmediate(give, this, slice)
      else setTimeout(give, REST_MS, this, slice)
      given += 1
    },
  })
  const pipe = stream.pipe.bind(stream)
  return Object.assign(stream, {
    pipe: ((escaping: Transform, options) => pipe(letPass(escaping, files), options)) as typeof pipe,
  })
}

type Slice = { bytes: Buffer; isFile: boolean }

function* slicesOf(message: Pieces): Generator<Slice, undefined> {
  for (const piece of message) {
    const isFile = typeof piece !== 'string'
    const whole = bytesOf(piece)
    for (let at = 0; at < whole.length; at += SLICE_BYTES)
      yield { bytes: whole.subarray(at, at + SLICE_BYTES), isFile }
  }
}

/**
 * Skips dot-stuffing for files, because lines of base64 have no dots. nodemailer checks each byte in
 * JavaScript, which is half of the CPU time of a large message (measured).
 */
function letPass(escaping: Transform, files: WeakSet<Buffer>): Transform {
  const read = escaping._transform.bind(escaping)
  escaping._transform = (chunk, encoding, done) => {
    if (files.has(chunk)) done(null, chunk)
    else read(chunk, encoding, done)
  }
  return escaping
}
