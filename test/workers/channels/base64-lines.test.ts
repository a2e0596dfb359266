/** Base64 lines, compared byte for byte with Node's own at every size that may make a difference. */
import { randomBytes } from 'node:crypto'
import { encodedSize } from '../../../db/validation/files.ts'
import { writeLines } from '../../../workers/channels/base64-lines.ts'
import t from '../../support/tap.ts'

const LINE = 57

const expected = (bytes: Buffer): string => bytes.toString('base64').replace(/.{76}(?=.)/g, '$&\r\n')

/** Splits bytes into pieces of this size. The last one may be shorter. */
const inPieces = (bytes: Buffer, size: number): Buffer[] =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, n) => bytes.subarray(n * size, (n + 1) * size))

t.test('encodes every size as lines without an extra line break', async (t) => {
  const sizes = Array.from({ length: 1_000 }, (_, n) => n + 1)
  for (const size of [...sizes, 262_199, 262_200, 262_201]) {
    const bytes = randomBytes(size)
    const to = Buffer.alloc(encodedSize(size) - 2)
    writeLines(inPieces(bytes, 3 * LINE), to)
    if (to.toString() !== expected(bytes)) t.fail(`${size} bytes`)
  }
  t.pass('all are equal')
})

t.test('ends every line that others follow', async (t) => {
  const bytes = randomBytes(4 * LINE)
  const to = Buffer.alloc(encodedSize(bytes.length))
  writeLines(inPieces(bytes, LINE), to)
  t.equal(to.toString(), `${expected(bytes)}\r\n`)
})
