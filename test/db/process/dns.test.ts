/** Lookups of names from outside, with a DNS server on loopback. Names that hang don't block others. */
import { createNames } from '../../../db/process/dns.ts'
import { startDns } from '../../support/dns.ts'
import t, { type Test } from '../../support/tap.ts'

const PUBLIC = '93.184.215.14'

/** A server that resolves `good.test`, and never responds for `slow.test`. */
async function begin(t: Test, patience?: number) {
  const dns = await startDns(t)
  dns.silent = /slow\.test$/
  dns.addresses.set('good.test', [PUBLIC])
  return { dns, names: createNames(dns.address, patience) }
}

t.test('resolves local names without a server', async (t) => {
  const { dns, names } = await begin(t)
  for (const name of ['localhost', 'LOCALHOST', 'localhost.'])
    t.match(await names.addresses(name), /^(127\.|::1)/)
  t.strictSame(dns.asked, [])
})

t.test("doesn't use the threads of getaddrinfo", async (t) => {
  const { names } = await begin(t)
  for (const each of [names, createNames()]) {
    const asked = each.addresses('waits.slow.test').catch(() => {})
    await new Promise(setImmediate)
    t.notOk(process.getActiveResourcesInfo().includes('GetAddrInfoReqWrap'))
    await asked
  }
})

t.test('queries a name once, and less often after timeouts', async (t) => {
  const { dns, names } = await begin(t, 300)
  const words = { name: 'Unanswered', message: 'no name server responded within 0.3 s' }
  const asked = ['x.slow.test', 'x.slow.test'].map((name) => names.addresses(name))
  for (const each of asked) await t.rejects(each, words)
  t.strictSame(dns.asked.sort(), ['x.slow.test', 'x.slow.test'], 'once for each family')
  await t.rejects(names.addresses('x.slow.test'), {
    name: 'Unanswered',
    message: /responded to the last query/,
  })
  await t.rejects(names.texts('x.slow.test'), words, 'another question')
  t.equal(dns.asked.length, 3)
})

t.test("a hundred hanging names don't block others", async (t) => {
  const { names } = await begin(t, 1_000)
  t.strictSame(await names.addresses('good.test'), [PUBLIC])
  const slow = Array.from({ length: 100 }, (_, nth) => names.addresses(`h${nth}.slow.test`))
  const ends = Promise.allSettled(slow)
  t.strictSame(await names.addresses('good.test'), [PUBLIC])
  t.ok((await ends).every(({ status }) => status === 'rejected'))
})

t.test('resolves from one address family if the other times out', async (t) => {
  const { dns, names } = await begin(t, 300)
  dns.silent_types = [28]
  t.strictSame(await names.addresses('good.test'), [PUBLIC])
  t.strictSame(await names.addresses('good.test'), [PUBLIC], 'and is no name that hung')
})

t.test('rejects an alias without an address with a reason', async (t) => {
  const { dns, names } = await begin(t)
  dns.addresses.set('alias.test', ['cname:nowhere.test'])
  await t.rejects(names.addresses('alias.test'), { code: 'ENODATA', message: 'alias.test has no address' })
})

t.test("a name's zone is the nearest parent with SOA", async (t) => {
  const { dns, names } = await begin(t, 500)
  for (const zone of ['example.co.test', 'test']) dns.zones.add(zone)
  t.equal(await names.zone('mail.example.co.test'), 'example.co.test')
  t.equal(await names.zone('example.co.test'), 'example.co.test')
  t.equal(await names.zone('other.co.test'), null, 'a top-level domain is nobody’s')
  await t.rejects(names.zone('a.slow.test'), { name: 'Unanswered' })
})
