/** Writing a message to a fast connection: everything else runs between two slices. */
import { PassThrough, Writable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { inSlices } from '../../../../workers/providers/smtp/slices.ts'
import t from '../../../support/tap.ts'

/** Sends a message and returns the largest part that is written in one turn of the event loop. */
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

t.test('a large message is written completely over many event loop turns', async (t) => {
  const file = Array.from({ length: 8 }, (_, index) => Buffer.alloc(358_800, index))
  const { bytes, most } = await send(['head\r\n\r\n', ...file, '\r\ntail\r\n'])
  t.ok(bytes.equals(Buffer.concat([Buffer.from('head\r\n\r\n'), ...file, Buffer.from('\r\ntail\r\n')])))
  t.ok(most <= 128 * 1024, `${most} bytes in one turn`)
})

t.test('beyond a megabyte there is time between slices, not only a turn', async (t) => {
  const slices = 100
  let ticks = 0
  const ticking = setInterval(() => {
    ticks += 1
  }, 1)
  await send([Buffer.alloc(slices * 32 * 1024)])
  clearInterval(ticking)
  t.ok(ticks >= slices / 4, `${ticks} times`)
})

t.test('a small message is written in one turn', async (t) => {
  const { bytes, most } = await send(['a'.repeat(20_000)])
  t.equal(bytes.length, 20_000)
  t.equal(most, 20_000)
})
