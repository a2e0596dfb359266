/**
 * A message on its way into a connection, slice by slice.
 * Promises: after each slice everything else in this process has its turn, so that a large message, which a fast server
 * takes as quickly as it is written, holds up no other; beyond a megabyte the server and everything else on the machine
 * have a rest, too. A message of one slice waits for nothing. As one piece a
 * message would count as handed over while most of it is still here.
 */
import { Readable, type Transform } from 'node:stream'
import { setImmediate, setTimeout } from 'node:timers'
import { bytesOf, type Pieces } from '../mail/pieces.ts'

const SLICE_BYTES = 32 * 1024
/** Slices that go out without a rest, and the rest before each of the others, in milliseconds: some 30 MB a second. */
const SLICES_WITHOUT_REST = 40
const REST_MS = 1

/** The message as a stream, for nodemailer to pipe through what escapes its dots. */
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
 * Lets files pass unread: lines of base64 have no dot. nodemailer looks at each byte in JavaScript, measured as half of
 * the processor time that a large message takes.
 */
function letPass(escaping: Transform, files: WeakSet<Buffer>): Transform {
  const read = escaping._transform.bind(escaping)
  escaping._transform = (chunk, encoding, done) => {
    if (files.has(chunk)) done(null, chunk)
    else read(chunk, encoding, done)
  }
  return escaping
}
