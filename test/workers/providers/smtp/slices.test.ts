/** Writing a message to a fast connection: everything else runs between two slices. */
import { once } from 'node:events'
import { PassThrough, Writable } from 'node:stream'
import { finished } from 'node:stream/promises'
import DataStream from 'nodemailer/lib/smtp-connection/data-stream'
import { inSlices } from '../../../../workers/providers/smtp/slices.ts'
import t from '../../../support/tap.ts'

/**
 * Sends a message. Returns its writes, the largest part that is written in one turn of the event loop, and
 * the bytes that were written when the last slice was announced.
 */
async function send(message: readonly (string | Buffer)[]) {
  const taken: Buffer[] = []
  let before = -1
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
  const onLast = () => {
    before = Buffer.concat(taken).length
  }
  inSlices(message, onLast).pipe(new PassThrough()).pipe(connection)
  await finished(connection)
  isOver = true
  return { bytes: Buffer.concat(taken), writes: taken.length, most, before }
}

t.test('writes a large message over many event loop turns', async (t) => {
  const file = Array.from({ length: 8 }, (_, index) => Buffer.alloc(358_800, index))
  const { bytes, most } = await send(['head\r\n\r\n', ...file, '\r\ntail\r\n'])
  t.ok(bytes.equals(Buffer.concat([Buffer.from('head\r\n\r\n'), ...file, Buffer.from('\r\ntail\r\n.\r\n')])))
  t.ok(most <= 128 * 1024, `${most} bytes in one turn`)
})

t.test('beyond a megabyte, slices have pauses between them', async (t) => {
  const slices = 100
  let ticks = 0
  const ticking = setInterval(() => {
    ticks += 1
  }, 1)
  await send([Buffer.alloc(slices * 32 * 1024)])
  clearInterval(ticking)
  t.ok(ticks >= slices / 4, `${ticks} times`)
})

t.test('a small message and its final dot are one write', async (t) => {
  const { bytes, writes, before } = await send(['a'.repeat(20_000)])
  t.equal(bytes.toString(), `${'a'.repeat(20_000)}\r\n.\r\n`)
  t.equal(writes, 1)
  t.equal(before, 0, 'it counts as sent before that')
})

t.test('a message counts as sent before its final dot', async (t) => {
  const { bytes, before } = await send(['head\r\n\r\n', Buffer.alloc(200_000, 'A'), '\r\ntail\r\n'])
  t.equal(bytes.length - before, '\r\ntail\r\n.\r\n'.length)
})

t.test('escapes leading dots as nodemailer does', async (t) => {
  const texts = [
    '.',
    '.\r\n.\r\n..\r\n.a',
    'a\r\n.\r\nQUIT\r\n',
    'bare\n.\nline\r.\rbreaks\n\r.\r\r\n.\n\n.',
    'ends with a break\n',
    'no dots\r\n\r\n',
  ]
  for (const text of texts) {
    const nodemailers = new DataStream()
    nodemailers.end(Buffer.from(text))
    const expected = Buffer.concat(await nodemailers.toArray()).toString()
    t.equal((await send([text])).bytes.toString(), expected, JSON.stringify(text))
  }
})

t.test('a message whose connection has failed never counts as sent', async (t) => {
  let isLast = false
  const stream = inSlices([Buffer.alloc(60_000, 'A')], () => {
    isLast = true
  })
  stream.once('data', () => stream.destroy())
  await once(stream, 'close')
  await new Promise((resolve) => setImmediate(resolve))
  t.notOk(isLast)
})

t.test("a stalled server's last slice never counts as sent", async (t) => {
  let isLast = false
  const message = Buffer.alloc(64 * 1024, 'A')
  const stream = inSlices([message], () => {
    isLast = true
  })
  const stalled = new Writable({ highWaterMark: 1, write: () => undefined })
  stream.pipe(new PassThrough({ highWaterMark: 1 })).pipe(stalled)
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
  t.notOk(isLast)
  stream.destroy()
  stalled.destroy()
})
