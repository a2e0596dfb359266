/** DNS records: the host for DNS panels, and how a published record differs from the required one. */
import { cutValue, differenceWords, hostIn } from '../../../api/dashboard/components/dns.ts'
import t from '../../support/tap.ts'

t.test("the host is the name's part before its zone", async (t) => {
  t.equal(hostIn('example.com', 'hg1._domainkey.mail.example.com'), 'hg1._domainkey.mail')
  t.equal(hostIn('example.com', 'example.com'), '@')
  t.equal(hostIn('example.com', 'other.test'), 'other.test')
  t.equal(hostIn('example.com', 'mail.myexample.com'), 'mail.myexample.com')
  t.equal(hostIn(null, '_dmarc.example.com'), '_dmarc.example.com')
})

t.test('describes how a record differs', async (t) => {
  const value = `v=DKIM1; k=rsa; p=${'A'.repeat(392)}`
  const dkim = { name: 'hg1._domainkey.example.com', value }
  const said = (...published: string[]) => differenceWords(dkim, published)
  t.equal(said(value.slice(0, 200)), 'cut short: 200 of 410 characters')
  t.equal(said(`${value}AAAA`), 'too long: 414 instead of 410 characters')
  t.equal(said(value.replaceAll(';', '\\;')), 'contains stray quotation marks or backslashes')
  t.equal(said('v=DKIM1; k=rsa; p='), 'a revoked key: p= is empty')
  t.equal(said('v=DKIM1; k=rsa; p=BBBB'), 'a different key')
  t.equal(said('hello'), 'a different text')
  t.match(
    said('hello', value.slice(0, 300)),
    /^none of the 2 records .* The closest is cut short: 300 of 410/,
  )
  const spf = { name: 'example.com', value: 'v=spf1 mx include:spf.relay.example -all' }
  t.equal(differenceWords(spf, ['v=spf1 mx -all']), 'lacks include:spf.relay.example')
  t.equal(
    differenceWords(spf, ['v=spf1 -all', 'v=spf1 mx -all']),
    '2 SPF records, but receivers only accept one',
  )
})

t.test('splits a value where the published one is cut short', async (t) => {
  const value = 'v=DKIM1; k=rsa; p=ABCDEF'
  const cut = (published: string) => cutValue(value, [published])
  t.strictSame(cut('v=DKIM1;k=rsa;p=ABC'), { present: 'v=DKIM1; k=rsa; p=ABC', missing: 'DEF' })
  for (const whole of [value, 'v=DKIM1; k=rsa; p=XYZ', `${value}G`, ''])
    t.strictSame(cut(whole), { present: value, missing: '' })
})
