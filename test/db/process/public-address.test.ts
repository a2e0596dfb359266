/** The check of addresses from customers: public or not, in any spelling. */
import { createNames } from '../../../db/process/dns.ts'
import { NotPublic, networksIn, urlFault, vettedAddresses } from '../../../db/process/public-address.ts'
import { startDns } from '../../support/dns.ts'
import t from '../../support/tap.ts'

/** Spellings of this machine's address. */
const LOOPBACK = [
  ...['127.0.0.1', '127.1', '127.0.1', '127.0.0.2', '127.255.255.254', '0x7F.0.1', '127.000.000.001'],
  ...'0177.0.0.1 0177.0.0.01 0177.1 0x7f.0.0.1 0x7f.1 0x7f000001 0X7F000001 0x7F.0x0.0x0.0x1'.split(' '),
  ...['2130706433', '017700000001', '0x7f.0x000001', '127.0x1', '0', '0.0.0.0', '00.0.0.0', '0x0'],
  ...['127.0.0.1.', '127.1.', '１２７.０.０.１', '①②⑦.⓪.⓪.①', '127。0。0。1', '127．0．0．1', '127｡1'],
  ...['%31%32%37.0.0.1', '127%2e0%2e0%2e1', '%3127.0.0.1'],
  ...'[::1] [0:0:0:0:0:0:0:1] [0000:0000:0000:0000:0000:0000:0000:0001] [::0001] [0::1] [::] [0::0]'.split(
    ' ',
  ),
  ...[
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::FFFF:7F00:0001]',
    '[0:0:0:0:0:ffff:127.0.0.1]',
    '[::ffff:0.0.0.0]',
  ],
  ...['[::127.0.0.1]', '[::7f00:1]', '[::ffff:0:127.0.0.1]', '[::ffff:0:7f00:1]'],
  ...'[64:ff9b::127.0.0.1] [64:ff9b::7f00:1] [64:ff9b:1::7f00:1] [2002:7f00:1::] [2002:7f00:1::1]'.split(' '),
  ...'[2001:0:7f00:1::] [2001:0:4136:e378:8000:63bf:80ff:fffe] [fe80::1] [fec0::1] [ff02::1] [fd00::1]'.split(
    ' ',
  ),
  ...['localhost', 'LOCALHOST', 'localhost.', 'a.localhost', 'ｌocalhost'],
]

const PRIVATE = [
  ...['168.63.129.16', '[::ffff:168.63.129.16]', '161.26.0.10', '166.9.250.1'],
  ...'10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 169.254.169.254 100.64.0.1 192.0.0.1'.split(' '),
  ...'198.18.0.1 224.0.0.1 240.0.0.1 255.255.255.255 [::ffff:169.254.169.254] [64:ff9b::a9fe:a9fe]'.split(
    ' ',
  ),
]

t.test("rejects every spelling of an address that isn't public", async (t) => {
  t.ok(LOOPBACK.length >= 60)
  for (const host of [...LOOPBACK, ...PRIVATE]) {
    const url = `https://${host}/webhooks`
    const fault = urlFault(url, [])
    t.ok(fault, url)
    if (!URL.canParse(url)) continue
    const at = { resolve: async () => ['127.0.0.1'], allowed: [] }
    await t.rejects(vettedAddresses(new URL(url), at), { name: 'NotPublic' }, url)
  }
  for (const host of ['93.184.215.14', '[2606:2800:21f:cb07:6820:80da:af6b:8b2c]', '[::ffff:8.8.8.8]'])
    t.equal(urlFault(`https://${host}/`, []), null, host)
  for (const host of ['[2001:db8::1]', '[2002:808:808::1]', '[64:ff9b::808:808]', '[::808:808]'])
    t.ok(urlFault(`https://${host}/`, []), host)
})

t.test('limits a URL to 2,048 characters and explains errors', async (t) => {
  const long = (length: number) => 'https://example.com/'.padEnd(length, 'a')
  t.equal(urlFault(long(2_048), []), null)
  t.equal(urlFault(long(2_049), []), 'must be at most 2048 characters long')
  for (const user of ['me', ':word', 'me:word'])
    t.equal(urlFault(`https://${user}@example.com`, []), 'must not contain a user name or a password')
  t.equal(urlFault('https://localhost.example.com/', []), null, 'a name that only begins as ours does')
  await t.rejects(vettedAddresses(new URL('https://example.com'), { resolve: async () => [], allowed: [] }), {
    message: 'not a public address',
  })
})

t.test('requires https without a user, except in allowed networks', async (t) => {
  const loopback = networksIn(['127.0.0.0/8', '::1/128'])
  t.equal(urlFault('https://hooks.example.com/x', []), null)
  for (const url of [
    'http://hooks.example.com',
    'ftp://example.com',
    'https://me:word@example.com',
    'nothing',
    '',
  ])
    t.ok(urlFault(url, []), url)
  t.equal(urlFault('http://127.0.0.1:9000/x', loopback), null)
  t.equal(urlFault('http://localhost:9000/x', loopback), null)
  t.equal(urlFault('http://[::ffff:127.0.0.1]:9000/x', loopback), null)
  t.ok(urlFault('http://10.0.0.1', loopback))
  t.ok(urlFault('http://hooks.example.com', loopback))
  t.equal(urlFault('http://hooks.internal', networksIn(['10.0.0.0/8'])), null)
  const at = { resolve: async () => ['93.184.215.14'], allowed: loopback }
  await t.rejects(vettedAddresses(new URL('http://example.com'), at), NotPublic)
  t.strictSame(await vettedAddresses(new URL('https://example.com'), at), ['93.184.215.14'])
  t.strictSame(await vettedAddresses(new URL('http://127.0.0.1'), at), ['127.0.0.1'])
})

t.test('checks all addresses of a name, each time', async (t) => {
  const dns = await startDns(t)
  const at = { resolve: createNames(dns.address).addresses, allowed: [] }
  const url = new URL('https://rebind.test/')
  dns.addresses.set('rebind.test', ['93.184.215.14'])
  t.strictSame(await vettedAddresses(url, at), ['93.184.215.14'])
  const hostile = [
    ['127.0.0.1'],
    ['93.184.215.14', '127.0.0.1'],
    ['93.184.215.14', '::1'],
    ['::ffff:127.0.0.1'],
    ['64:ff9b::7f00:1'],
    ['2606:2800:21f:cb07:6820:80da:af6b:8b2c', '10.0.0.1'],
  ]
  for (const addresses of hostile) {
    dns.addresses.set('rebind.test', addresses)
    await t.rejects(vettedAddresses(url, at), { name: 'NotPublic' }, addresses.join(' '))
  }
  dns.addresses.set('alias.test', ['cname:inside.test'])
  dns.addresses.set('inside.test', ['192.168.0.7'])
  await t.rejects(vettedAddresses(new URL('https://alias.test/'), at), { name: 'NotPublic' }, 'by its CNAME')
  await t.rejects(vettedAddresses(new URL('https://nowhere.test/'), at), { code: 'ENOTFOUND' })
})
