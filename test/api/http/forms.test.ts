/** Fields of forms and query strings: parsed like the URL standard, and limited in number. */
import fc from 'fast-check'
import { readForm, readQuery } from '../../../api/http/forms.ts'
import t from '../../support/tap.ts'

/** DECISIONS: Forms. */
const MAX_FIELDS = 2_000
const URLENCODED = 'application/x-www-form-urlencoded'
const bytesOf = (text: string) => new TextEncoder().encode(text)
const refusing = async (work: () => unknown): Promise<unknown> => {
  try {
    return await work()
  } catch (error) {
    return error
  }
}

t.test('a query string is parsed like the URL standard', async () => {
  const letters = fc.constantFrom('a', '=', '&', '%', '+', '4', '1', 'f', 'F', '%C3%A9', '%C3', '\0', ' ')
  fc.assert(
    fc.property(fc.string({ unit: letters, maxLength: 60 }), (text) => {
      return JSON.stringify([...readQuery(text)]) === JSON.stringify([...new URLSearchParams(`?${text}`)])
    }),
    { numRuns: 3_000 },
  )
})

t.test('a form has at most 2,000 fields in either encoding', async (t) => {
  const boundary = 'a-boundary-that-browsers-might-make'
  const part = `--${boundary}\r\nContent-Disposition: form-data; name="a"\r\n\r\nb\r\n`
  const parts = (count: number) => bytesOf(`${part.repeat(count)}--${boundary}--\r\n`)
  const type = `multipart/form-data; boundary=${boundary}`
  t.equal((await readForm(type, parts(MAX_FIELDS))).length, MAX_FIELDS)
  t.equal((await readForm(URLENCODED, bytesOf('a&'.repeat(MAX_FIELDS - 1)))).length, MAX_FIELDS - 1)
  const refused = { code: 'bad_request', message: /2,000 fields/ }
  t.match(await refusing(() => readForm(type, parts(MAX_FIELDS + 1))), refused)
  for (const text of ['a&', 'a=&', '&', '=&'])
    t.match(await refusing(() => readForm(URLENCODED, bytesOf(text.repeat(MAX_FIELDS)))), refused, text)
  t.match(await refusing(() => readQuery('&'.repeat(MAX_FIELDS))), refused)
})

t.test('rejects forms of unknown types or without an end', async (t) => {
  const body = bytesOf('a=b')
  t.match(await refusing(() => readForm('text/plain', body)), { code: 'unsupported_media_type' })
  for (const type of [
    'multipart/form-data',
    'multipart/form-data; boundary=x',
    `multipart/form-data; boundary=${'x'.repeat(40)}`,
  ])
    t.match(await refusing(() => readForm(`${type};`, body)), { code: 'bad_request' }, type)
  t.strictSame(await readForm('', bytesOf('')), [])
})

t.test('accepts every boundary that RFC 2046 allows', async (t) => {
  const named = (value: string) => `Content-Disposition: form-data; name="a"\r\n\r\n${value}`
  const form = (boundary: string, padding = '') =>
    `before\r\n--${boundary}${padding}\r\n${named(`1\r\n--${boundary}x`)}\r\n--${boundary}\r\n${named('')}\r\n--${boundary}--after`
  for (const boundary of ['x', "'()+_,-./:=?", 'two words', 'y'.repeat(70), '--', 'z'.repeat(27)]) {
    const type = `multipart/form-data; boundary="${boundary}"`
    const read = [
      ['a', `1\r\n--${boundary}x`],
      ['a', ''],
    ]
    t.strictSame(await readForm(type, bytesOf(form(boundary))), read, boundary)
    t.strictSame(await readForm(`${type}; charset=utf-8`, bytesOf(form(boundary, ' \t'))), read, 'padded')
  }
  const token = 'multipart/form-data;boundary=x'
  t.equal((await readForm(token, bytesOf(form('x')))).length, 2, 'without quotes')
  for (const boundary of ['', 'ends ', 'y'.repeat(71), 'a*b'])
    t.match(
      await refusing(() => readForm(`multipart/form-data; boundary="${boundary}"`, bytesOf(form(boundary)))),
      { code: 'bad_request' },
      `boundary ${boundary}`,
    )
})
