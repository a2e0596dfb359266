/** Limits on the responses of name servers, with real queries to a server on loopback. */
import { createDomainLookups } from '../../../../db/accounts/domains/dns-lookups.ts'
import { startDns } from '../../../support/dns.ts'
import t from '../../../support/tap.ts'

t.test('ignores DNS records beyond a limit', async (t) => {
  const dns = await startDns(t)
  const lookup = createDomainLookups(dns.address).lookupTxt
  dns.records.set(
    'many.test',
    Array.from({ length: 300 }, (_, index) => [`record ${index}`]),
  )
  const found = await lookup('many.test')
  t.equal(found.length, 200)
  t.ok(found.includes('record 0'))
})

t.test("times out if a name server doesn't respond", async (t) => {
  const dns = await startDns(t)
  dns.silent = true
  const lookup = createDomainLookups(dns.address, 100).lookupTxt
  await t.rejects(lookup('silent.test'), {
    code: 'unavailable',
    message: 'Could not look up silent.test: no name server responded within 0.1 s',
  })
})
