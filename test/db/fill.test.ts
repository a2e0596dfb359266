/** Names in the texts of errors. */
import { fill } from '../../db/fill.ts'
import t from '../support/tap.ts'

t.test('fills each name with its value', async (t) => {
  t.equal(fill('No {noun} {id}, {noun}.', { noun: 'email', id: 7 }), 'No email 7, email.')
})

t.test('does not fill names inside values', async (t) => {
  t.equal(fill('{a} and {b}', { a: '{b}', b: '$1 $&' }), '{b} and $1 $&')
})

t.test('leaves template variables unchanged', async (t) => {
  t.equal(fill('{a} is not a {{name}} variable', { a: 'x' }), 'x is not a {{name}} variable')
})
