/** Lines of base64, byte for byte as Node itself would write them, at every size that could make a difference. */
import { randomBytes } from 'node:crypto'
import { encodedSize } from '../../../db/validation/files.ts'
import { writeLines } from '../../../workers/channels/base64-lines.ts'
import t from '../../support/tap.ts'

const LINE = 57

const expected = (bytes: Buffer): string => bytes.toString('base64').replace(/.{76}(?=.)/g, '$&\r\n')

/** The bytes in pieces of whole lines, and what is left of them. */
const inPieces = (bytes: Buffer, size: number): Buffer[] =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, n) => bytes.subarray(n * size, (n + 1) * size))

t.test('every size comes out in lines, with none ended in vain', async (t) => {
  const sizes = Array.from({ length: 1_000 }, (_, n) => n + 1)
  for (const size of [...sizes, 262_199, 262_200, 262_201]) {
    const bytes = randomBytes(size)
    const to = Buffer.alloc(encodedSize(size) - 2)
    writeLines(inPieces(bytes, 3 * LINE), to)
    if (to.toString() !== expected(bytes)) t.fail(`${size} bytes`)
  }
  t.pass('all are equal')
})

t.test('whole lines that others follow are all ended', async (t) => {
  const bytes = randomBytes(4 * LINE)
  const to = Buffer.alloc(encodedSize(bytes.length))
  writeLines(inPieces(bytes, LINE), to)
  t.equal(to.toString(), `${expected(bytes)}\r\n`)
})
