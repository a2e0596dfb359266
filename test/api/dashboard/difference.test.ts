/** The comparison of two texts by line and by word. */
import { difference } from '../../../api/dashboard/components/difference.ts'
import t from '../../support/tap.ts'

const shown = (one: string, other: string): string[] =>
  difference(one, other).map(({ sign, text }) => `${sign}${text}`)

t.test('marks lines as removed, added or unchanged, in order', (t) => {
  t.strictSame(shown('a\nb\nc', 'a\nc\nd'), [' a', '-b', ' c', '+d'])
  t.strictSame(shown('a\r\nb', 'a\nb'), [' a', ' b'])
  t.strictSame(shown('a', 'b'), ['-a', '+b'])
  t.end()
})

t.test('finds a change in a long text, with bounded output', (t) => {
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

t.test('shows lines of both texts if they have nothing in common', (t) => {
  const lines = shown('a\n'.repeat(500_000), 'b\r\n'.repeat(300_000))
  t.ok(lines.length < 5_000, `${lines.length} lines`)
  t.ok(lines.includes('…498,000 more lines'))
  t.ok(lines.includes('…298,000 more lines'))
  t.end()
})

t.test('finds a few changes that are far apart', (t) => {
  const text = (mark: string): string =>
    Array.from({ length: 5_000 }, (_, at) => ([0, 2_499, 4_999].includes(at) ? mark : `line ${at}`)).join(
      '\n',
    )
  const changed = shown(text('old'), text('new')).filter((line) => /^[-+]/.test(line))
  t.strictSame(changed, ['-old', '+new', '-old', '+new', '-old', '+new'])
  t.end()
})

t.test('bounds the output for many changes that are far apart', (t) => {
  const text = (mark: string): string =>
    Array.from({ length: 500_000 }, (_, at) => (at % 2_500 === 9 ? mark : '')).join('\n')
  const lines = shown(text('old'), text('new'))
  t.equal(lines.filter((line) => line === '+new').length, 200)
  t.ok(lines.length < 7_000, `${lines.length} lines`)
  t.end()
})

t.test("doesn't compare texts that differ too much", (t) => {
  const text = (mark: string): string => Array.from({ length: 9_000 }, (_, at) => `${mark} ${at}`).join('\n')
  const isUncompared = ({ sign, text }: { sign: string; text: string }) =>
    sign === '…' && !text.endsWith('more lines')
  const lines = difference(text('old'), text('new'))
  t.ok(lines[0] && isUncompared(lines[0]))
  t.ok(lines.length < 5_000, `${lines.length} lines`)
  t.notOk(difference('a', `a\n${'b\n'.repeat(20_000)}`).some(isUncompared), 'if lines are only added')
  t.end()
})

t.test('marks changes within lines', (t) => {
  const marked = (one: string, other: string): string[] =>
    difference(one, other).map(
      ({ sign, text, parts }) =>
        sign + (parts?.map((part) => (part.changed ? `[${part.text}]` : part.text)).join('') ?? text),
    )
  t.strictSame(marked('<p>Within 12 days, {{name}}</p>', '<p>Within 14 days, {{name}}</p>'), [
    '-<p>Within [12] days, {{name}}</p>',
    '+<p>Within [14] days, {{name}}</p>',
  ])
  t.strictSame(marked('a\none two\nthree\nz', 'a\none 2\nthree!\nz'), [
    ' a',
    '-one [two]',
    '-three',
    '+one [2]',
    '+three[!]',
    ' z',
  ])
  t.strictSame(marked('entirely old', 'a new line'), ['-entirely old', '+a new line'])
  const long = Array.from({ length: 60_000 }, (_, at) => `word${at}`).join(' ')
  const parts = difference(`${long} 1`, `${long} 2`).map(({ parts }) => parts)
  t.strictSame(parts, [undefined, undefined], 'no words of lines that are too long')
  t.end()
})

t.test('both texts can be restored from the difference', (t) => {
  const [one, other] = ['\ta  b\n\n c,d\ne', '\ta b\n\n\n c;d\nf\n']
  const lines = difference(one, other)
  const side = (sign: string) =>
    lines.filter((line) => line.sign === ' ' || line.sign === sign).map(({ text }) => text)
  t.equal(side('-').join('\n'), one)
  t.equal(side('+').join('\n'), other)
  t.end()
})
