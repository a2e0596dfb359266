// Text that can be stored, its length, and maps of text. DECISIONS: Text, Lengths, Sizes.

import fc from 'fast-check'
import { codePoints, isPlainMap, memberPath, textFault, utf8Bytes } from '../../../db/validation/strings.ts'
import t from '../../support/tap.ts'

const nul = 'must not contain NUL characters'
const surrogate = 'must not contain lone surrogates'
const tooDeep = 'must not be nested deeper than 32 levels'
const nested = (levels: number): unknown => JSON.parse('['.repeat(levels) + ']'.repeat(levels))

t.test('finds NUL characters with their position', async (t) => {
  t.strictSame(textFault('a\0b'), { field: '', problem: nul })
  const contacts = { contacts: [{ email: 'a' }, { email: 'b', properties: { x: ['y', 'z\0'] } }] }
  t.strictSame(textFault(contacts), { field: 'contacts[1].properties.x[1]', problem: nul })
  t.strictSame(textFault({ a: { 'k\0': 1 } }), { field: 'a["k\\u0000"]', problem: nul })
})

t.test('finds lone surrogates, and accepts pairs', async (t) => {
  t.strictSame(textFault({ subject: 'x\ud83d' }), { field: 'subject', problem: surrogate })
  t.strictSame(textFault({ '\udc00': '' }), { field: '["\\udc00"]', problem: surrogate })
  t.equal(textFault({ subject: '😀', '😀': 'ü' }), null)
})

t.test("accepts values that aren't text", async (t) => {
  for (const value of [null, 5, true, undefined, '', [], {}, { a: [null, 1, { b: false }] }])
    t.equal(textFault(value), null)
})

t.test('__proto__ and similar names are ordinary keys', async (t) => {
  t.strictSame(textFault(JSON.parse('{"__proto__":{"a":"\\u0000"}}')), { field: '__proto__.a', problem: nul })
  t.equal(textFault(JSON.parse('{"__proto__":"a","constructor":"b","prototype":"c"}')), null)
})

t.test('accepts 32 levels of nesting and rejects 33', async (t) => {
  t.equal(textFault(nested(32)), null)
  t.strictSame(textFault(nested(33)), { field: '[0]'.repeat(32), problem: tooDeep })
  t.match(textFault(JSON.parse(`${'{"a":'.repeat(33)}1${'}'.repeat(33)}`)), { problem: tooDeep })
})

t.test("siblings don't add to the depth", async (t) => {
  t.equal(textFault(Array.from({ length: 100 }, () => nested(31))), null)
})

t.test("a million levels of nesting don't overflow the stack", async (t) => {
  t.match(textFault(nested(1_000_000)), { problem: tooDeep })
})

t.test('JSON is valid exactly without NUL and lone surrogates', async () => {
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: 'binary', maxDepth: 6 }), (value) => {
      const json = JSON.stringify(value)
      const hasFault = /(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/.test(json)
      return (textFault(value) !== null) === hasFault
    }),
  )
})

t.test('a path stays printable and short for any key', async (t) => {
  t.equal(memberPath('headers', 'X-Foo'), 'headers.X-Foo')
  t.equal(memberPath('', 'email'), 'email')
  t.equal(memberPath('properties', 'a b'), 'properties["a b"]')
  t.equal(memberPath('h', 'a\r\nb'), 'h["a\\r\\nb"]')
  t.equal(memberPath('h', 'a\x7f\u2028'), 'h["a\\u007f\\u2028"]')
  t.ok(memberPath('h', 'x'.repeat(100_000)).length < 80)
})

t.test('lengths count Unicode code points', async (t) => {
  t.equal(codePoints(''), 0)
  t.equal(codePoints('aü€😀'), 4)
  t.equal(codePoints('\ud83d'), 1)
  fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => codePoints(text) === [...text].length))
})

t.test('html and text count bytes', async (t) => {
  t.equal(utf8Bytes('aü€😀'), 1 + 2 + 3 + 4)
})

t.test('a string map only contains strings', async (t) => {
  for (const map of [{}, { a: '' }, JSON.parse('{"__proto__":"x"}'), Object.create(null)])
    t.equal(isPlainMap(map), true)
  const others = [null, undefined, 'a', 5, [], ['a'], new Map(), { a: 1 }, { a: null }, { a: {} }]
  for (const other of [...others, JSON.parse('{"__proto__":{}}')]) t.equal(isPlainMap(other), false)
})
