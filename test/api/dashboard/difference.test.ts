/** What changed between two texts: which lines are gone, new or kept, and how long it takes to say so. */
import { difference } from '../../../api/dashboard/components/difference.ts'
import t from '../../support/tap.ts'

const shown = (one: string, other: string): string[] =>
  difference(one, other).map(({ sign, text }) => `${sign}${text}`)

t.test('lines are gone, new or kept, in their order', (t) => {
  t.strictSame(shown('a\nb\nc', 'a\nc\nd'), [' a', '-b', ' c', '+d'])
  t.strictSame(shown('a\r\nb', 'a\nb'), [' a', ' b'])
  t.strictSame(shown('a', 'b'), ['-a', '+b'])
  t.end()
})

t.test('a change is found however long the text around it is, and no more is shown than a page can', (t) => {
  const blank = '\n'.repeat(1_000_000)
  const lines = shown(`${blank}a${blank}`, `${blank}b${blank}`)
  t.ok(lines.length < 5_000, `${lines.length} lines`)
  const at = lines.indexOf('-a')
  t.strictSame(lines.slice(at - 1, at + 3), [' ', '-a', '+b', ' '])
  t.equal(lines.filter((line) => line === '…998,000 more lines').length, 2)
  const one = shown('a\n'.repeat(2_001), 'a\n'.repeat(2_001).trimEnd())
  t.ok(one.includes('…1 more line'), 'in words that suit the number')
  t.end()
})

t.test('of texts that have nothing in common some lines are shown of each', (t) => {
  const lines = shown('a\n'.repeat(500_000), 'b\r\n'.repeat(300_000))
  t.ok(lines.length < 5_000, `${lines.length} lines`)
  t.ok(lines.includes('…498,000 more lines'))
  t.ok(lines.includes('…298,000 more lines'))
  t.end()
})

t.test('texts that differ too much to be compared are not passed off as compared', (t) => {
  const text = (mark: string): string =>
    Array.from({ length: 5_000 }, (_, at) => ([0, 2_499, 4_999].includes(at) ? mark : `line ${at}`)).join(
      '\n',
    )
  const words = '…Too much differs to be compared line by line: here are the old lines, then the new ones'
  const lines = shown(`same\n${text('old')}`, `same\n${text('new')}`)
  t.strictSame(lines.slice(0, 4), [' same', words, '-old', '-line 1'])
  t.equal(lines.indexOf('+new'), lines.lastIndexOf('-old') + 1)
  t.notOk(shown(`a\n${'b\n'.repeat(9_000)}c`, `d\n${'b\n'.repeat(400)}e`).includes(words))
  t.notOk(shown('a', `a\n${'b\n'.repeat(20_000)}`).includes(words), 'where lines are only added')
  t.end()
})

/** Of a text as long as a template may have lines to be compared. */
const LINES = 2_000

/** The least time of three, in milliseconds. */
function timeOf(one: string, other: string): number {
  const times = [1, 2, 3].map(() => {
    const started = performance.now()
    difference(one, other)
    return performance.now() - started
  })
  return Math.min(...times)
}

t.test('a megabyte in long lines that differ at their ends takes no longer than short ones', (t) => {
  const linesOf = (begin: string, end: string): string =>
    Array.from({ length: LINES }, (_, index) => `${begin}${end}${String(index).padStart(4, '0')}`).join('\n')
  const short = timeOf(linesOf('', 'x'), linesOf('', 'y'))
  const long = timeOf(linesOf('a'.repeat(515), 'x'), linesOf('a'.repeat(515), 'y'))
  t.ok(long < 4 * short + 20, `${Math.round(long)} ms beside ${Math.round(short)} ms`)
  t.end()
})
