/** Files in a worker's memory: within a budget, in order of arrival, and never written over while they may be sent. */
import { createHash, randomBytes } from 'node:crypto'
import t from 'tap'
import { createEncodedFiles } from '../../../workers/channels/encoded-files.ts'
import { makeTeam, startService } from '../../support/service.ts'

const service = await startService(t)
const team = await makeTeam(service)
const never = new AbortController().signal
const SIZE = 262_200 * 2 + 100
/** What one of them takes, encoded, with a little room. */
const ONE = 720_000

async function stored() {
  const raw = randomBytes(SIZE)
  const { status } = await service.call('POST', '/v1/attachments?filename=a', { key: team.key, raw })
  if (status !== 201) throw new Error(`${status}`)
  const sha256 = createHash('sha256').update(raw).digest('hex')
  const base64 = raw.toString('base64').replace(/.{76}(?=.)/g, '$&\r\n')
  return { wanted: { sha256, size: SIZE, filename: 'a' }, base64 }
}

const [one, two, three] = await Promise.all([stored(), stored(), stored()])
const of = { team_id: team.id, copies: 0 }
type Files = ReturnType<typeof createEncodedFiles>
const hold = (files: Files, { wanted }: typeof one) => files.hold(of, [wanted], never)
const textOf = (
  { encoded }: { encoded: ReadonlyMap<string, readonly Buffer[]> },
  { wanted }: typeof one,
): string => Buffer.concat(encoded.get(wanted.sha256) ?? []).toString()

t.test('memory of what was sent is used again for what comes after it', async (t) => {
  const files = createEncodedFiles(service.database, ONE)
  const first = await hold(files, one)
  t.equal(textOf(first, one), one.base64)
  first.release(true)
  const second = await hold(files, two)
  t.equal(textOf(second, two), two.base64)
  const [block] = second.encoded.get(two.wanted.sha256) ?? []
  t.ok(first.encoded.get(one.wanted.sha256)?.includes(block as Buffer))
})

t.test('what may still be on its way to a provider is never written over', async (t) => {
  const files = createEncodedFiles(service.database, ONE)
  const [sent, lost] = await Promise.all([hold(files, one), hold(files, one)])
  lost.release(false)
  sent.release(true)
  const next = await hold(files, two)
  t.equal(textOf(next, two), two.base64)
  t.equal(textOf(lost, one), one.base64)
})

t.test('who finds no room waits in line; a single one that is larger than all room is let in', async (t) => {
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

t.test('a content whose bytes are gone is an error, and holds no room', async (t) => {
  const files = createEncodedFiles(service.database, ONE)
  const gone = { ...one.wanted, sha256: '0'.repeat(64) }
  await t.rejects(files.hold(of, [gone], never), { message: 'the bytes of a are gone' })
  t.ok(files.look()(of, [one.wanted]))
  const held = await hold(files, one)
  t.equal(textOf(held, one), one.base64)
})
