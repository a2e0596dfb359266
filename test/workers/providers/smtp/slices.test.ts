/** A message on its way into a connection that takes it at once: everything else has its turn between two slices. */
import { PassThrough, Writable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { inSlices } from '../../../../workers/providers/smtp/slices.ts'
import t from '../../../support/tap.ts'

/** The largest part of a message that goes out in one turn of the event loop. */
async function send(message: readonly (string | Buffer)[]): Promise<{ bytes: Buffer; most: number }> {
  const taken: Buffer[] = []
  let [most, since, isOver] = [0, 0, false]
  const turn = (): void => {
    since = 0
    if (!isOver) setImmediate(turn)
  }
  turn()
  const connection = new Writable({
    write(chunk: Buffer, _encoding, done) {
      taken.push(chunk)
      since += chunk.length
      most = Math.max(most, since)
      done()
    },
  })
  inSlices(message).pipe(new PassThrough()).pipe(connection)
  await finished(connection)
  isOver = true
  return { bytes: Buffer.concat(taken), most }
}

t.test('a large message goes out over many turns of the event loop, whole', async (t) => {
  const file = Array.from({ length: 8 }, (_, index) => Buffer.alloc(358_800, index))
  const { bytes, most } = await send(['head\r\n\r\n', ...file, '\r\ntail\r\n'])
  t.ok(bytes.equals(Buffer.concat([Buffer.from('head\r\n\r\n'), ...file, Buffer.from('\r\ntail\r\n')])))
  t.ok(most <= 128 * 1024, `${most} bytes in one turn`)
})

t.test('beyond a megabyte others have time between two slices, not only their turn', async (t) => {
  const slices = 100
  let ticks = 0
  const ticking = setInterval(() => {
    ticks += 1
  }, 1)
  await send([Buffer.alloc(slices * 32 * 1024)])
  clearInterval(ticking)
  t.ok(ticks >= slices / 4, `${ticks} times`)
})

t.test('a small one goes out in one', async (t) => {
  const { bytes, most } = await send(['a'.repeat(20_000)])
  t.equal(bytes.length, 20_000)
  t.equal(most, 20_000)
})
