/** The CLI's commands for DMARC, return paths and second keys of domains, with a test DNS server. */
import { adminCli } from '../../support/admin.ts'
import { testDatabase } from '../../support/database.ts'
import { startDns } from '../../support/dns.ts'
import { startService } from '../../support/service.ts'
import { startSmtpSink } from '../../support/smtp-sink.ts'
import t, { type Test } from '../../support/tap.ts'
import { startWorker } from '../../support/worker.ts'

const RETURN_PATH_DOMAIN = 'bounces.example.net'

type Record = { type: string; name: string; value: string; required: boolean; state: string }

async function start(t: Test, name: string) {
  const { url } = await testDatabase(t)
  const dns = await startDns(t)
  const cli = adminCli({ DATABASE_URL: url, DNS_SERVER: dns.address, RETURN_PATH_DOMAIN })
  const { id } = await cli.json(['team', 'create', '--name', 'Acme'])
  const domain = await cli.json(['domain', 'add', id, name, '--verified'])
  const verified = async () => JSON.parse((await cli.run(['domain', 'verify', id, name])).stdout)
  const dmarc = async (): Promise<Record> =>
    (await verified()).records.find((record: Record) => record.name.startsWith('_dmarc.'))
  const publish = (at: string, text: string) => dns.records.set(`_dmarc.${at}`, [[text]])
  const answersMail = () => {
    dns.exchanges.set(RETURN_PATH_DOMAIN, ['mx.example.net'])
    dns.records.set(RETURN_PATH_DOMAIN, [['v=spf1 ip4:192.0.2.1 -all']])
  }
  return { dns, cli, id: id as string, domain, verified, dmarc, publish, answersMail }
}

t.test('suggests a DMARC policy with reports if none exists', async (t) => {
  const { dmarc } = await start(t, 'news.corp.example')
  t.match(await dmarc(), {
    ...{ type: 'TXT', name: '_dmarc.news.corp.example', state: 'missing', required: false },
    value: /^v=DMARC1; p=none; rua=mailto:\S+@news\.corp\.example$/,
  })
})

t.test("finds the organizational domain's policy, and never weakens it", async (t) => {
  const { dmarc, publish } = await start(t, 'news.corp.example')
  publish('corp.example', 'v=DMARC1; p=reject; sp=reject')
  t.match(await dmarc(), {
    ...{ name: '_dmarc.corp.example', state: 'found' },
    value: /^v=DMARC1; p=reject; sp=reject; rua=mailto:/,
  })
  publish('corp.example', 'v=DMARC1; p=reject; rua=mailto:a@corp.example')
  t.match(await dmarc(), { value: 'v=DMARC1; p=reject; rua=mailto:a@corp.example' })
})

t.test("the From domain's own policy wins over its organization's", async (t) => {
  const { dmarc, publish } = await start(t, 'news.corp.example')
  publish('corp.example', 'v=DMARC1; p=reject')
  publish('news.corp.example', 'v=DMARC1; p=quarantine')
  t.match(await dmarc(), { name: '_dmarc.news.corp.example', state: 'found', published: [/p=quarantine/] })
})

t.test('psd=y makes the name one label below the organizational domain', async (t) => {
  const { dmarc, publish } = await start(t, 'a.b.corp.example')
  publish('example', 'v=DMARC1; p=reject; psd=y')
  t.match(await dmarc(), { name: '_dmarc.a.b.corp.example', state: 'missing' })
  publish('corp.example', 'v=DMARC1; p=none')
  t.match(await dmarc(), { name: '_dmarc.corp.example', state: 'found' })
})

t.test('psd=n marks the organizational domain, whatever its parents publish', async (t) => {
  const { dns, dmarc, publish } = await start(t, 'a.b.corp.example')
  publish('b.corp.example', 'v=DMARC1; p=none; psd=n')
  publish('corp.example', 'v=DMARC1; p=reject')
  dns.asked.length = 0
  t.match(await dmarc(), { name: '_dmarc.b.corp.example', state: 'found' })
  t.notOk(dns.asked.includes('_dmarc.corp.example'))
})

t.test('a long name needs at most eight queries', async (t) => {
  const { dns, dmarc } = await start(t, 'a.b.c.d.e.f.g.h.i.j.example')
  dns.asked.length = 0
  await dmarc()
  const asked = dns.asked.filter((name) => name.startsWith('_dmarc.'))
  t.equal(asked.length, 8)
  t.strictSame(asked.slice(0, 2), ['_dmarc.a.b.c.d.e.f.g.h.i.j.example', '_dmarc.e.f.g.h.i.j.example'])
  t.equal(asked.at(-1), '_dmarc.example')
})

t.test('ignores two DMARC records at one name', async (t) => {
  const { dns, dmarc } = await start(t, 'corp.example')
  dns.records.set('_dmarc.corp.example', [['v=DMARC1; p=none'], ['v=DMARC1; p=reject']])
  t.match(await dmarc(), { state: 'missing' })
})

t.test('a domain’s own return path is an optional CNAME record', async (t) => {
  const { dns, domain, verified } = await start(t, 'corp.example')
  const cname = { type: 'CNAME', name: 'bounces.corp.example', value: RETURN_PATH_DOMAIN, required: false }
  t.strictSame(domain.dns_records.at(-1), cname)
  t.notOk(domain.dns_records.some(({ value }: Record) => value.startsWith('v=spf1')))
  const state = async () => (await verified()).records.find(({ type }: Record) => type === 'CNAME').state
  t.equal(await state(), 'missing')
  dns.aliases.set('bounces.corp.example', 'elsewhere.example')
  t.equal(await state(), 'different')
  dns.aliases.set('bounces.corp.example', RETURN_PATH_DOMAIN)
  t.equal(await state(), 'found')
})

t.test('domain return-path on needs the CNAME, MX and SPF', async (t) => {
  const { dns, cli, id, answersMail } = await start(t, 'corp.example')
  const turn = async (word: string) => cli.run(['domain', 'return-path', id, 'corp.example', word])
  const code = async () => (await turn('on')).code
  answersMail()
  t.equal(await code(), 1)
  dns.aliases.set('bounces.corp.example', RETURN_PATH_DOMAIN)
  dns.exchanges.clear()
  t.equal(await code(), 1)
  answersMail()
  dns.records.delete(RETURN_PATH_DOMAIN)
  t.equal(await code(), 1)
  t.match(await cli.json(['domain', 'list', id]), [{ return_path: false }])
  answersMail()
  const on = await turn('on')
  t.equal(on.code, 0)
  t.match(JSON.parse(on.stdout), { name: 'corp.example', return_path: true })
  t.match(JSON.parse((await turn('off')).stdout), { return_path: false })
})

t.test('domain ed25519 on adds a second DKIM record', async (t) => {
  const { dns, cli, id, verified } = await start(t, 'corp.example')
  const keysOf = ({ dns_records }: { dns_records: Record[] }) =>
    dns_records.filter(({ name }) => name.includes('._domainkey.'))
  const on = await cli.json(['domain', 'ed25519', id, 'corp.example', 'on'])
  const [first, second] = keysOf(on)
  t.match(first, { value: /k=rsa/, required: true })
  t.match(second, { value: /^v=DKIM1; k=ed25519; p=[A-Za-z0-9+/]{43}=$/, required: false })
  dns.records.set(second?.name ?? '', [[second?.value ?? '']])
  t.match((await verified()).records[1], { name: second?.name, state: 'found' })
  t.strictSame(keysOf(await cli.json(['domain', 'ed25519', id, 'corp.example', 'on'])), [first, second])
  t.strictSame(keysOf(await cli.json(['domain', 'ed25519', id, 'corp.example', 'off'])), [first])
})

t.test('sender check prints whether bounces can come back', async (t) => {
  const service = await startService(t)
  const dns = await startDns(t)
  const sink = await startSmtpSink(t)
  await startWorker(t, service, { smtp_url: sink.url })
  const cli = adminCli({ DATABASE_URL: service.url, DNS_SERVER: dns.address, RETURN_PATH_DOMAIN })
  const check = async () => (await cli.json(['sender', 'check'])).return_path
  const checked = await check()
  t.match(checked, { domain: RETURN_PATH_DOMAIN, mx: null, spf: null, last_report_at: null, fault: /MX/ })
  dns.exchanges.set(RETURN_PATH_DOMAIN, ['mx.example.net'])
  t.match(await check(), { mx: ['mx.example.net'], fault: /SPF/ })
  dns.records.set(RETURN_PATH_DOMAIN, [['v=spf1 -all']])
  t.match(await check(), { spf: 'v=spf1 -all', fault: null })
  const unset = adminCli({ DATABASE_URL: service.url, DNS_SERVER: dns.address })
  t.match((await unset.json(['sender', 'check'])).return_path, { domain: null, fault: /RETURN_PATH_DOMAIN/ })
})
