/** Finding the page of a path. */
import { createFinder } from '../../../api/dashboard/server/find.ts'
import type { Page } from '../../../api/dashboard/server/page.ts'
import { EMPTY } from '../../support/empty.ts'
import t from '../../support/tap.ts'

const LIST = [
  { method: 'GET', path: '' },
  { method: 'POST', path: '/things/bulk' },
  { method: 'GET', path: '/things/:name' },
  { method: 'POST', path: '/things/:name' },
  { method: 'GET', path: '/things/:name/parts/:part_id' },
  { method: 'POST', path: '/things/:name/parts/:part_id/remove' },
  { method: 'GET', path: '/things.csv' },
] as const

const finder = createFinder(LIST as unknown as Page[])
const ID = '0190a0b0-0000-7000-8000-000000000000'

function said(method: string, path: string) {
  const found = finder.page(method, path)
  return found && 'page' in found ? [found.page.path, found.params] : found
}

t.test('finds the first page for a path and method', async (t) => {
  t.match(said('POST', '/things/bulk'), ['/things/bulk', EMPTY])
  t.match(said('GET', '/things/bulk'), ['/things/:name', { name: 'bulk' }])
  t.match(said('HEAD', '/things/a'), ['/things/:name', { name: 'a' }])
  t.match(said('GET', `/things/a%2Fb/parts/${ID}`), [/part_id$/, { name: 'a/b', part_id: ID }])
  t.match(said('GET', ''), [/^$/, EMPTY])
})

t.test('returns the allowed methods for another method', async (t) => {
  t.strictSame(said('DELETE', '/things/a'), { allowed: ['HEAD', 'GET', 'POST'] })
  t.strictSame(said('GET', `/things/a/parts/${ID}/remove`), { allowed: ['POST'] })
})

t.test('paths match exactly, and IDs must be UUIDs', async (t) => {
  const none = ['/', '/things', '/things/', '/Things/a', '/things/a/', '/things/a/b', '/thingsXcsv', '/x']
  for (const path of [...none, '/things/a/parts/7']) t.equal(said('GET', path), null, path)
})

t.test('rejects parameters with invalid encoding or NUL', async (t) => {
  for (const name of ['%', '%zz', '%ff', '%C3', 'a%00b']) t.equal(said('GET', `/things/${name}`), null, name)
  t.match(said('GET', '/things/caf%C3%A9'), [/name/, { name: 'café' }])
})

t.test('finds the nearest page above the path of a form', async (t) => {
  t.match(finder.above(`/things/a/parts/${ID}/remove`), { path: `/things/a/parts/${ID}` })
  t.equal(finder.above('/nothing/there'), null)
  t.match(finder.above('/things/a'), { path: '/things/a' })
  t.equal(finder.above('/things/bulk'), null, 'a word of the form’s path names no thing')
})
