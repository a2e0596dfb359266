/** The CLI's commands for sending domains, with a test DNS server. */
import { createPrivateKey, createPublicKey } from 'node:crypto'
import { openKey } from '../../../db/accounts/domains/dkim.ts'
import { sendingDomains } from '../../../db/accounts/domains/domains.sql.ts'
import { createSecrets } from '../../../db/process/secrets.ts'
import { adminCli } from '../../support/admin.ts'
import { testDatabase } from '../../support/database.ts'
import { startDns } from '../../support/dns.ts'
import { SECRET_KEY } from '../../support/environment.ts'
import { openPool } from '../../support/pool.ts'
import t, { type Test } from '../../support/tap.ts'

async function start(t: Test) {
  const { url } = await testDatabase(t)
  const dns = await startDns(t)
  const cli = adminCli({ DATABASE_URL: url, DNS_SERVER: dns.address })
  const { id } = await cli.json(['team', 'create', '--name', 'Acme'])
  return { url, dns, cli, id: id as string }
}

/** A value as zones publish it, in strings of at most 255 characters. */
const inStrings = (value: string): string[] => value.match(/.{1,255}/gs) ?? []

t.test('domain add prints records and encrypts the key', async (t) => {
  const { url, cli, id } = await start(t)
  const domain = await cli.json(['domain', 'add', id, 'Mail.Bücher.Example'])
  t.match(domain, { name: 'mail.xn--bcher-kva.example', status: 'pending', verified_at: null })
  const [dkim, ...hints] = domain.dns_records
  t.match(dkim, {
    type: 'TXT',
    name: /^hg[0-9a-z]{6}\._domainkey\.mail\.xn--bcher-kva\.example$/,
    value: /^v=DKIM1; k=rsa; p=\S+$/,
  })
  t.match(hints, [{ name: /^_dmarc\./, value: /^v=DMARC1; / }, { value: /^v=spf1 / }])

  const database = await openPool(t, url, { size: 1 })
  const verified = await cli.json(['domain', 'add', id, 'sealed.test', '--verified'])
  const [key] = await sendingDomains(database, [{ team_id: id, name: 'sealed.test' }])
  t.ok(key)
  t.notMatch(key?.dkim_private_key.toString('latin1'), /PRIVATE KEY/)
  const sealed = key?.dkim_private_key ?? Buffer.alloc(0)
  const secrets = createSecrets(SECRET_KEY)
  const pem = openKey(secrets, { team_id: id, name: 'sealed.test' }, sealed)
  t.throws(() => openKey(secrets, { team_id: verified.id, name: 'sealed.test' }, sealed), 'another team’s')
  t.throws(() => openKey(secrets, { team_id: id, name: 'other.test' }, sealed), 'another domain’s')
  const published = createPublicKey(createPrivateKey(pem)).export({ type: 'spki', format: 'der' })
  t.equal(verified.dns_records[0].value.split('p=')[1], published.toString('base64'))
  t.equal(createPrivateKey(pem).asymmetricKeyDetails?.modulusLength, 2048)
})

t.test('domain add --verified skips the DNS lookup', async (t) => {
  const { cli, id } = await start(t)
  t.match(await cli.json(['domain', 'add', id, 'a.test', '--verified']), {
    status: 'verified',
    verified_at: /Z$/,
  })
})

t.test('domain add rejects invalid names, duplicates and no SECRET_KEY', async (t) => {
  const { cli, id } = await start(t)
  for (const name of ['localhost', 'a b.test', '127.0.0.1', 'https://a.test', 'a.test.'])
    t.match(await cli.fault(['domain', 'add', id, name]), /must be a domain name/, name)
  await cli.json(['domain', 'add', id, 'a.test'])
  t.match(await cli.fault(['domain', 'add', id, 'A.TEST']), /^name .*already has the domain a\.test/)
  const weak = await cli.fault(['domain', 'add', id, 'b.test'], { env: { SECRET_KEY: 'short' } })
  t.match(weak, /SECRET_KEY must be/)
  const other = await cli.json(['team', 'create', '--name', 'Other'])
  t.match(await cli.json(['domain', 'add', other.id, 'a.test']), { name: 'a.test' }, 'so may another team')
})

t.test('domain add rejects more domains than the plan allows', async (t) => {
  const { cli, id } = await start(t)
  for (const name of ['a.test', 'b.test', 'c.test', 'd.test', 'e.test'])
    await cli.json(['domain', 'add', id, name])
  t.match(await cli.fault(['domain', 'add', id, 'f.test']), /free allows 5 in total, .* 5/)
  t.match(await cli.fault(['domain', 'add', id, 'a.test']), /^name .*already has the domain a\.test/)
  await cli.json(['domain', 'remove', id, 'a.test'])
  t.match(await cli.json(['domain', 'add', id, 'f.test']), { name: 'f.test' })
  await cli.json(['team', 'plan', id, '--plan', 'enterprise'])
  t.match(await cli.json(['domain', 'add', id, 'g.test']), { name: 'g.test' }, 'a plan without a limit')
})

t.test('domain verify verifies only when the published key is ours', async (t) => {
  const { dns, cli, id } = await start(t)
  const { dns_records: records } = await cli.json(['domain', 'add', id, 'a.test'])
  const verify = async () => {
    const { code, stdout } = await cli.run(['domain', 'verify', id, 'A.test'])
    const verification = JSON.parse(stdout)
    t.equal(code, verification.status === 'verified' ? 0 : 1, 'the exit code says it too')
    return verification
  }
  const [dkim] = records

  const nothing = await verify()
  t.match(nothing, { name: 'a.test', status: 'pending', verified_at: null })
  t.equal(nothing.records.map((record: { state: string }) => record.state).join(), 'missing,missing,missing')
  const required = nothing.records.map((record: { required: boolean }) => record.required)
  t.same(required, [true, false, false])

  const { dns_records: others } = await cli.json(['domain', 'add', id, 'b.test'])
  dns.records.set(dkim.name, [inStrings(others[0].value)])
  t.match(await verify(), {
    status: 'pending',
    records: [{ state: 'different', published: [others[0].value] }],
  })
  dns.records.set(dkim.name, [['v=DKIM1; k=rsa; p=']])
  t.match(await verify(), { status: 'pending', records: [{ state: 'different' }] }, 'a revoked key')

  dns.records.set(dkim.name, [
    ['some other text'],
    inStrings(dkim.value.replace('; k', ' ;\tk').replace('p=', 'p= ')),
  ])
  dns.records.set('a.test', [['google-site-verification=x'], ['v=spf1 include:relay.example -all']])
  const verified = await verify()
  t.match(verified, { status: 'verified', verified_at: /Z$/ })
  t.equal(verified.records.map((record: { state: string }) => record.state).join(), 'found,missing,found')

  dns.records.clear()
  const later = await verify()
  t.match(later, { status: 'verified', verified_at: verified.verified_at, records: [{ state: 'missing' }] })
})

t.test('domain rekey signs with the old key until verified', async (t) => {
  const { url, dns, cli, id } = await start(t)
  const { dns_records: before } = await cli.json(['domain', 'add', id, 'a.test', '--verified'])
  const database = await openPool(t, url, { size: 1 })
  const inUse = async () => {
    const [key] = await sendingDomains(database, [{ team_id: id, name: 'a.test' }])
    const owner = { team_id: id, name: 'a.test' }
    const pem = openKey(createSecrets(SECRET_KEY), owner, key?.dkim_private_key ?? Buffer.alloc(0))
    const der = createPublicKey(createPrivateKey(pem)).export({ type: 'spki', format: 'der' })
    return `${key?.dkim_selector} ${der.toString('base64')}`
  }
  const selectorOf = (record: { name: string }) => record.name.split('.')[0]
  const keyOf = (record: { name: string; value: string }) =>
    `${selectorOf(record)} ${record.value.split('p=')[1]}`

  const { dns_records: given } = await cli.json(['domain', 'rekey', id, 'a.test'])
  const rekeyed = await cli.json(['domain', 'rekey', id, 'A.test'])
  const [old, next, ...hints] = rekeyed.dns_records
  t.same(old, before[0])
  t.equal(new Set([old, given[1], next].map(selectorOf)).size, 3, 'no selector stands for two keys')
  t.equal(hints.length, 2)
  t.equal(await inUse(), keyOf(old))

  dns.records.set(next.name, [inStrings(old.value)])
  t.match(await cli.json(['domain', 'verify', id, 'a.test']), {
    status: 'verified',
    replaced_selector: null,
    records: [{ state: 'missing' }, { state: 'different' }, Object, Object],
  })
  t.equal(await inUse(), keyOf(old))

  dns.records.set(next.name, [inStrings(next.value)])
  const verified = await cli.json(['domain', 'verify', id, 'a.test'])
  t.match(verified, {
    replaced_selector: selectorOf(old),
    records: [{ name: next.name, state: 'found' }, Object, Object],
  })
  t.equal(verified.records.length, 3)
  t.equal(await inUse(), keyOf(next))
  t.match(await cli.json(['domain', 'list', id]), [{ dns_records: [next, Object, Object] }])
  t.match(await cli.fault(['domain', 'rekey', id, 'b.test']), 'No domain b.test')
})

t.test('domain verify fails without DNS or for unknown domains', async (t) => {
  const { dns, cli, id } = await start(t)
  await cli.json(['domain', 'add', id, 'a.test'])
  dns.failing = true
  t.match(await cli.fault(['domain', 'verify', id, 'a.test']), /Could not look up .*a\.test: .*ESERVFAIL/)
  t.match(await cli.fault(['domain', 'verify', id, 'b.test']), 'No domain b.test')
  const odd = await cli.fault(['domain', 'verify', id, 'a.test'], { env: { DNS_SERVER: 'no host' } })
  t.match(odd, /DNS_SERVER must be host or host:port/)
})

t.test('domain list shows every domain, and domain remove deletes one', async (t) => {
  const { cli, id } = await start(t)
  await cli.json(['domain', 'add', id, 'b.test'])
  await cli.json(['domain', 'add', id, 'a.test', '--verified'])
  const ramped = await cli.json(['domain', 'ramp', id, 'a.test', '200'])
  t.match(ramped, { name: 'a.test', ramp: { limit: 200, used: 0 } })
  const listed = await cli.json(['domain', 'list', id])
  t.match(listed, [
    { name: 'a.test', status: 'verified', ramp: { limit: 200, used: 0, factor: 2 } },
    { name: 'b.test', status: 'pending', dns_records: [Object], ramp: null },
  ])
  const removed = await cli.json(['domain', 'remove', id, 'A.test'])
  t.match(removed, { id: listed[0].id, name: 'a.test', removed: true })
  t.match(await cli.json(['domain', 'list', id]), [{ name: 'b.test' }])
  t.match(await cli.fault(['domain', 'remove', id, 'a.test']), 'No domain a.test')
})
