/** The formats inside mail reports, each tested separately: groups of fields, addresses, dates. */
import {
  field,
  fieldGroups,
  parseFieldAddress,
  parseTime,
  pickRecipient,
} from '../../../../workers/providers/smtp/report-fields.ts'
import t from '../../../support/tap.ts'

const groupsOf = (text: string, most = 2) => fieldGroups(text, most).map((group) => Object.fromEntries(group))

t.test('empty lines separate groups, folded lines continue fields', async (t) => {
  t.strictSame(groupsOf('A: 1\r\n  and\t\n \t more \r\nno field\r\nB : 2\na: 3\n \nC:\n'), [
    { a: ['1 and more', '3'], b: ['2'] },
    { c: [''] },
  ])
  t.strictSame(groupsOf('A: 1\n\n x: y\nC: 3'), [{ a: ['1'] }, { c: ['3'] }], 'a blank line is not continued')
  t.strictSame(groupsOf('Final-Recipient: 1\n and'), [{ 'final-recipient': ['1 and'] }])
  t.strictSame(groupsOf('A: 1\0'), [{ a: ['1\ufffd'] }], 'what cannot be stored')
  const [group = new Map()] = fieldGroups('A: 1\na: 2', 1)
  t.strictSame([field(group, 'a'), field(group, 'b')], ['1', ''])
  t.throws(() => groupsOf('A: 1\n\nB: 2\n\nC: 3'), { message: 'the report has more than 2 parts' })
})

t.test('an address is read without its type, brackets and comment', async (t) => {
  const forms = [
    ['rfc822; a@b.cc (his)', 'a@b.cc'],
    [';a@b.cc', 'a@b.cc'],
    ['RFC822;<a@b.cc> (his)', 'a@b.cc'],
    ['x <a@b.cc>', 'x'],
    ['rfc822; ', null],
    ['rfc822; \\x{FC}@b.cc', '\\x{FC}@b.cc'],
    [' utf-8 ; \\x{FC}@b.cc', 'ü@b.cc'],
    ['utf-8; \\x{1f}\\x{20}\\x{d7ff}\\x{d800}\\x{dfff}', '\\x{1f} \ud7ff\\x{d800}\\x{dfff}'],
    ['utf-8; \\x{e000}\\x{10ffff}\\x{110000}', '\ue000\u{10ffff}\\x{110000}'],
  ] as const
  for (const [typed, address] of forms) t.equal(parseFieldAddress(typed), address, typed)
  t.equal(parseFieldAddress('a'.repeat(300))?.length, 254)
})

t.test('the original recipient counts, decoded if necessary', async (t) => {
  t.equal(pickRecipient('', 'rfc822;x@y.zz'), 'x@y.zz')
  t.equal(pickRecipient('rfc822;a+3Db@c.dd', 'rfc822;x@y.zz'), 'a=b@c.dd')
  t.equal(pickRecipient('rfc822;a+2Bb@c.dd', ''), 'a+b@c.dd')
  t.equal(pickRecipient('rfc822;a+2Bb@c.dd', 'rfc822;a+2Bb@C.dd'), 'a+2Bb@c.dd')
  t.equal(pickRecipient('rfc822;a+2Bb@c.dd', 'rfc822;x'), 'a+b@c.dd', 'the final one is no address')
  t.equal(pickRecipient('rfc822;a+2B', ''), 'a+2B', 'what is no address is not decoded')
})

t.test('uses the first plausible date, rounded up', async (t) => {
  const latest = new Date('2026-03-01T12:00:00Z')
  const of = (...dates: string[]) => parseTime(dates, latest).toISOString()
  t.equal(of('tomorrow', 'Sun, 01 Feb 2026 00:00:00 +0000 (UTC)'), '2026-02-01T00:00:00.999Z')
  t.equal(of('2026-02-01T00:00:00Z(UTC)'), '2026-02-01T00:00:00.999Z')
  t.equal(of('2026-03-01T12:00:01Z', '2026-02-01T00:00:00Z'), '2026-02-01T00:00:00.999Z')
  t.equal(of('2000-01-01T00:00:01Z'), '2000-01-01T00:00:01.999Z')
  t.equal(of('2000-01-01T00:00:00Z', '2026-03-01T12:00:01Z'), latest.toISOString())
  t.equal(of(latest.toISOString(), '2026-02-01T00:00:00Z'), latest.toISOString())
})
