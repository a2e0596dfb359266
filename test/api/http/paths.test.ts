/** Which declared paths a request's path fits: of the API's routes and of the dashboard's pages alike. */
import { createPaths } from '../../../api/http/paths.ts'
import t from '../../support/tap.ts'

const LIST = [
  { method: 'GET', path: '' },
  { method: 'POST', path: '/things/bulk' },
  { method: 'GET', path: '/things/:name' },
  { method: 'DELETE', path: '/things/:name' },
  { method: 'GET', path: '/things/:name/parts/:part_id' },
  { method: 'GET', path: '/things.csv' },
] as const

const fitting = createPaths(LIST, '/base')
const said = (path: string) =>
  fitting(`/base${path}`).map(({ route, methods, isLiteral, params }) => ({
    ...{ path: route.path, methods: methods.toSorted(), isLiteral, params },
  }))

t.test('what fits comes in the order of the list, with what it takes: HEAD with GET', async (t) => {
  t.strictSame(said('/things/bulk'), [
    { path: '/things/bulk', methods: ['POST'], isLiteral: true, params: {} },
    { path: '/things/:name', methods: ['GET', 'HEAD'], isLiteral: false, params: { name: 'bulk' } },
    { path: '/things/:name', methods: ['DELETE'], isLiteral: false, params: { name: 'bulk' } },
  ])
  t.match(said(''), [{ path: '', isLiteral: true }])
  t.match(said('/things/a%2Fb/parts/7'), [{ params: { name: 'a/b', part_id: '7' } }])
})

t.test('a path fits exactly, letter by letter', async (t) => {
  for (const path of [
    '/',
    '/things',
    '/things/',
    '/Things/a',
    '/things/a/',
    '/things/a/b',
    '/thingsXcsv',
    '/x',
  ])
    t.strictSame(said(path), [], path)
  t.strictSame(fitting('/things.csv'), [], 'without the base')
})

t.test('a parameter that is no percent-encoded UTF-8, or has a NUL, is known for it', async (t) => {
  for (const name of ['%', '%zz', '%ff', '%C3', 'a%00b'])
    t.match(said(`/things/${name}`), [{ params: null }, { params: null }], name)
  t.match(said('/things/caf%C3%A9'), [{ params: { name: 'café' } }, {}])
})
