/**
 * Files in a worker's memory: read in chunks, within a budget, in order of arrival, and never overwritten
 * while they may be sent.
 */
import { createHash, randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Tx } from '../../../db/postgres/pool.ts'
import { createEncodedFiles } from '../../../workers/channels/encoded-files.ts'
import { world } from '../../support/service.ts'
import t from '../../support/tap.ts'
import { until } from '../../support/worker.ts'

const { service, team } = await world(t)
const never = new AbortController().signal
const SIZE = 262_200 * 2 + 100
/** The encoded size of one file, with a small margin. */
const ONE = 720_000

async function stored(size = SIZE) {
  const raw = randomBytes(size)
  const { status } = await service.call('POST', '/v1/attachments?filename=a', { key: team.key, raw })
  if (status !== 201) throw new Error(`${status}`)
  const sha256 = createHash('sha256').update(raw).digest('hex')
  const base64 = raw.toString('base64').replace(/.{76}(?=.)/g, '$&\r\n')
  return { wanted: { sha256, size, filename: 'a' }, base64 }
}

const [one, two, three, small] = await Promise.all([stored(), stored(), stored(), stored(100)])
const of = { team_id: team.id, bufferedCopies: 0 }
type Files = ReturnType<typeof createEncodedFiles>
const hold = (files: Files, { wanted }: typeof one) => files.hold(of, [wanted], never)
const textOf = (
  { encoded }: { encoded: ReadonlyMap<string, readonly Buffer[]> },
  { wanted }: typeof one,
): string => Buffer.concat(encoded.get(wanted.sha256) ?? []).toString()

t.test('memory of sent files is reused', async (t) => {
  const files = createEncodedFiles(service.database, ONE)
  const first = await hold(files, one)
  t.equal(textOf(first, one), one.base64)
  first.release(true)
  const second = await hold(files, two)
  t.equal(textOf(second, two), two.base64)
  const [block] = second.encoded.get(two.wanted.sha256) ?? []
  t.ok(first.encoded.get(one.wanted.sha256)?.includes(block as Buffer))
})

t.test('allocates full chunks together, up to the budget', async (t) => {
  const held = await hold(createEncodedFiles(service.database, ONE), one)
  const [first, second, rest] = held.encoded.get(one.wanted.sha256) ?? []
  t.equal(second?.buffer, first?.buffer)
  t.equal(first?.buffer.byteLength, 2 * (first?.length ?? 0))
  t.not(rest?.buffer, first?.buffer)
  const larger = await stored(262_200 * 4)
  const none = await hold(createEncodedFiles(service.database, 1), larger)
  t.equal(textOf(none, larger), larger.base64, 'a file that is larger than the budget has memory of its own')
})

t.test('chunks of several files are read in turns', async (t) => {
  const { database } = service
  const begun = Promise.withResolvers<void>()
  let [touched, reading, most, read] = [0, 0, 0, 0]
  const watched: Tx = {
    ...database,
    async query(...call) {
      const result = await database.query(...call)
      touched += 1
      return result
    },
    async any(...call) {
      most = Math.max(most, ++reading)
      await begun.promise
      const rows = await database.any(...call)
      reading -= 1
      read += 1
      return rows
    },
  }
  const files = createEncodedFiles(watched, 10 * ONE)
  const order: [size: number, read: number][] = []
  const take = async (each: typeof one): Promise<void> => {
    t.equal(textOf(await hold(files, each), each), each.base64)
    order.push([each.wanted.size, read])
  }
  const large = [take(one), take(two)]
  await until('the first chunk is being read', () => reading > 0)
  const little = take(small)
  await until('all want to be read', () => touched === 3)
  begun.resolve()
  await Promise.all([...large, little])
  // The small one follows the chunk that is being read. Each large one has three.
  t.strictSame(order, [
    [100, 2],
    [SIZE, 4],
    [SIZE, 7],
  ])
  t.equal(most, 1)
})

t.test('a long file is read in chunks, never as text', async (t) => {
  const { database } = service
  let [ticks, ended, between] = [0, 0, 0]
  const pieces: Buffer[] = []
  const ticking = setInterval(() => {
    ticks += 1
  }, 1)
  t.teardown(() => clearInterval(ticking))
  const watched: Tx = {
    ...database,
    async any(...call) {
      if (ended > 0) between += ticks - ended
      const rows = await database.any(...call)
      // A read of some milliseconds, so that the pause after it is longer than a tick.
      await sleep(5)
      ended = ticks
      pieces.push(...rows.map((row) => (row as unknown as { bytes: Buffer }).bytes))
      return rows
    },
  }
  const long = await stored(262_200 * 8)
  t.equal(textOf(await hold(createEncodedFiles(watched, 10 * ONE), long), long), long.base64)
  // Four of the eight chunks are followed by a pause.
  t.ok(between >= 4, `${between} ticks between reads`)
  t.ok(pieces.length > 0 && pieces.every((piece) => Buffer.isBuffer(piece) && piece.length === 0))
})

t.test('bytes that may still be in transit are never overwritten', async (t) => {
  const files = createEncodedFiles(service.database, ONE)
  const [sent, lost] = await Promise.all([hold(files, one), hold(files, one)])
  lost.release(false)
  sent.release(true)
  const next = await hold(files, two)
  t.equal(textOf(next, two), two.base64)
  t.equal(textOf(lost, one), one.base64)
})

t.test('emails wait for memory, an oversized one for all others', async (t) => {
  const files = createEncodedFiles(service.database, ONE)
  const first = await hold(files, one)
  const hasRoom = files.look()
  t.notOk(hasRoom(of, [two.wanted]))
  t.ok(hasRoom(of, [one.wanted]), 'what is held already takes no more')
  const order: string[] = []
  const second = hold(files, two).then((held) => {
    order.push('second')
    return held
  })
  const third = files.hold(of, [three.wanted, one.wanted], never).then((held) => {
    order.push('third')
    return held
  })
  order.push('first ends')
  first.release(true)
  ;(await second).release(true)
  t.equal(textOf(await third, three), three.base64)
  t.strictSame(order, ['first ends', 'second', 'third'])
})

t.test('a deleted content is an error and uses no memory', async (t) => {
  const files = createEncodedFiles(service.database, ONE)
  const gone = { ...one.wanted, sha256: '0'.repeat(64) }
  await t.rejects(files.hold(of, [gone], never), { message: 'the content of a has been deleted' })
  t.ok(files.look()(of, [one.wanted]))
  const held = await hold(files, one)
  t.equal(textOf(held, one), one.base64)
})
