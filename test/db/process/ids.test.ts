/** IDs contain the time of their row, and keep its order. */
import { idAt, idNow, idsAt } from '../../../db/process/ids.ts'
import { firstIdAt } from '../../../db/validation/ids.ts'
import t from '../../support/tap.ts'

const at = (text: string): Date => new Date(text)

t.test('IDs of one time ascend within the bounds of their time', async (t) => {
  for (const time of ['2026-01-31T23:59:59.999Z', '2026-02-01T00:00:00.000Z', '2028-02-29T12:00:00.000Z']) {
    const nextId = idsAt(at(time))
    const ids = Array.from({ length: 1_000 }, nextId)
    t.strictSame(ids.toSorted(), ids)
    t.equal(new Set(ids).size, ids.length)
    const after = new Date(at(time).getTime() + 1)
    t.ok(ids.every((id) => id >= firstIdAt(at(time)) && id < firstIdAt(after)))
    t.match(ids[0], /^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/)
  }
})

t.test('generators created at the same time produce different IDs', async (t) => {
  const now = new Date()
  const ids = Array.from({ length: 1_000 }, () => idsAt(now)())
  t.equal(new Set(ids).size, ids.length)
})

t.test('current IDs ascend within the bounds of their time', async (t) => {
  const began = firstIdAt(new Date())
  const ids = Array.from({ length: 1_000 }, idNow)
  const ended = firstIdAt(new Date(Date.now() + 1))
  t.ok(ids.every((id) => id >= began && id < ended))
  t.strictSame(ids.toSorted(), ids)
  t.equal(new Set(ids).size, ids.length)
})

t.test('IDs of a time differ within its bounds', async (t) => {
  const time = at('2026-01-31T23:59:59.999Z')
  const ids = Array.from({ length: 1_000 }, () => idAt(time))
  t.ok(ids.every((id) => id >= firstIdAt(time) && id < firstIdAt(at('2026-02-01T00:00:00.000Z'))))
  t.equal(new Set(ids).size, ids.length)
})
