/** The settings of an API process: incomplete or guessable settings stop it, with one line each. */
import { fork } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { readApiSettings, reservedHeaders, settingsWarnings } from '../../api/config.ts'
import { portFault, readToolSettings, SettingsFault } from '../../db/process/config.ts'
import { startApi } from '../support/api-process.ts'
import { testDatabase } from '../support/database.ts'
import { bareEnvironment, faultLines, SECRET_KEY } from '../support/environment.ts'
import { RELAY_SECRETS, RELAYS } from '../support/relays.ts'
import t from '../support/tap.ts'

const BASE = {
  DATABASE_URL: 'postgres://localhost/x',
  SECRET_KEY: 'a secret key for tests, thirty-two characters or more',
}

/** The lines with which an API with these settings stops. None if it starts. */
const faults = (env: Record<string, string>) => faultLines(() => readApiSettings({ ...BASE, ...env }))

t.test('rejects tokens that are too short', async (t) => {
  for (const name of ['METRICS_TOKEN', 'HIREFIRE_TOKEN', 'SMTP_REPORT_TOKEN']) {
    t.match(faults({ [name]: 'a' }), [new RegExp(`^${name} must be .*16`)])
    t.strictSame(faults({ [name]: 'sixteen-or-more-' }), [])
    t.match(faults({ [name]: 'sixteen or more characters' }), [new RegExp(`^${name} must be `)], 'spaces')
  }
})

t.test('WHATSAPP_STOP_WORDS must not contain CANCEL', async (t) => {
  t.match(faults({ WHATSAPP_STOP_WORDS: 'fin, Cancel' }), [/^WHATSAPP_STOP_WORDS must not contain CANCEL/])
  t.strictSame(faults({ WHATSAPP_STOP_WORDS: 'fin, cancelled' }), [])
})

t.test('a relay must be known and have a valid secret', async (t) => {
  t.match(faults({ SMTP_RELAY: 'mailjet', SMTP_RELAY_SECRET: 'x' }), [
    'SMTP_RELAY must be one of mailgun, sendgrid, postmark, brevo',
  ])
  for (const relay of RELAYS) {
    t.match(faults({ SMTP_RELAY: relay }), [/^SMTP_RELAY_SECRET is not set, but SMTP_RELAY is /], relay)
    t.strictSame(faults({ SMTP_RELAY: relay, SMTP_RELAY_SECRET: RELAY_SECRETS[relay] }), [], relay)
  }
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-384' })
  const other = publicKey.export({ format: 'der', type: 'spki' }).toString('base64')
  for (const key of ['a-key-of-no-form-at-all', other])
    t.match(faults({ SMTP_RELAY: 'sendgrid', SMTP_RELAY_SECRET: key }), [
      /^SMTP_RELAY_SECRET must be the verification key/,
    ])
  for (const relay of ['postmark', 'brevo'])
    t.match(faults({ SMTP_RELAY: relay, SMTP_RELAY_SECRET: 'short' }), [
      /^SMTP_RELAY_SECRET must be at least 16/,
    ])
})

t.test('a replica is a single PostgreSQL server', async (t) => {
  const said = (url: string) => faults({ DATABASE_REPLICA_URL: url })
  t.strictSame(said('postgres://u:p@replica.test/x?sslmode=disable'), [])
  t.match(said('mysql://replica.test/x'), [/^DATABASE_REPLICA_URL /])
  t.match(said('postgres://u:p@one.test,two.test/x'), [/^DATABASE_REPLICA_URL must name one server$/])
})

t.test('WHATSAPP_APP_SECRET and WHATSAPP_VERIFY_TOKEN must be set together', async (t) => {
  t.match(faults({ WHATSAPP_APP_SECRET: 'x' }), [/^WHATSAPP_VERIFY_TOKEN is not set, /])
  t.match(faults({ WHATSAPP_VERIFY_TOKEN: 'x' }), [/^WHATSAPP_APP_SECRET is not set, /])
  t.strictSame(faults({ WHATSAPP_APP_SECRET: 'x', WHATSAPP_VERIFY_TOKEN: 'x' }), [])
})

t.test('rejects secrets with leading or trailing whitespace', async (t) => {
  const bare = { WHATSAPP_APP_SECRET: 'x', WHATSAPP_VERIFY_TOKEN: 'two words' }
  const openid = { OIDC_ISSUER: 'https://i.example', OIDC_CLIENT_ID: 'id', OIDC_CLIENT_SECRET: 's' }
  const relay = { SMTP_RELAY: 'mailgun', SMTP_RELAY_SECRET: 'key' }
  const all: Record<string, string> = { ...bare, ...openid, ...relay, PUBLIC_URL: 'https://a.example' }
  t.strictSame(faults(all), [])
  for (const name of Object.keys(all).filter((each) => /SECRET|TOKEN|CLIENT_ID/.test(each)))
    t.match(faults({ ...all, [name]: `${all[name]}\n` }), [`${name} must not start or end with whitespace`])
})

t.test('a port that can’t be used is one line', async (t) => {
  const said = (code: string) => portFault('PORT', 80, Object.assign(new Error('listen'), { code })).message
  t.match(said('EACCES'), /^ {2}PORT 80 is not allowed for this user. Choose a port above 1023$/m)
  t.match(said('EADDRINUSE'), /^ {2}PORT 80 is in use by another program$/m)
  for (const code of ['EADDRNOTAVAIL', 'EINVAL', 'EAI_AGAIN'])
    t.match(said(code), /^ {2}HOST must be an address of this machine$/m, code)
  t.notOk(portFault('PORT', 80, new Error('else')) instanceof SettingsFault)
})

t.test('HOST is the only address it listens on', async (t) => {
  const { url } = await testDatabase(t)
  const api = await startApi(t, url, { HOST: '127.0.0.2' })
  t.equal((await fetch(`${api.base.replace('127.0.0.1', '127.0.0.2')}/health`)).status, 200)
  await t.rejects(fetch(`${api.base}/health`))
})

t.test('reserved header prefixes are a comma-separated list', async (t) => {
  const settings = readApiSettings({ ...BASE, RESERVED_HEADER_PREFIXES: 'X-SMTPAPI, X-MC-,' })
  t.strictSame(reservedHeaders(settings).prefixes, ['X-SMTPAPI', 'X-MC-'])
  t.strictSame(reservedHeaders(readApiSettings(BASE)), { prefixes: [], names: [] })
  t.match(faults({ RESERVED_HEADER_PREFIXES: 'X-MC-,a b' }), [
    /^RESERVED_HEADER_PREFIXES must be header prefixes/,
  ])
})

t.test('PUBLIC_URL can’t have a path, and http causes a warning', async (t) => {
  const warnings = (PUBLIC_URL: string) => settingsWarnings(readApiSettings({ ...BASE, PUBLIC_URL }), {})
  for (const PUBLIC_URL of ['https://example.com/mail', 'https://example.com/?x', 'https://u@example.com'])
    t.match(faults({ PUBLIC_URL }), [/^PUBLIC_URL must be an address without a path/])
  for (const fine of ['https://example.com', 'https://example.com:8443/', 'http://localhost:3000'])
    t.strictSame(warnings(fine), [], fine)
  t.match(warnings('http://example.com'), [/^PUBLIC_URL is not an https:\/\/ URL/])
})

t.test('PUBLIC_URL is normalized', async (t) => {
  for (const typed of [
    'https://a.example ',
    'HTTPS://A.example/',
    'https:///a.example',
    'https://a.example\\',
  ])
    t.equal(readApiSettings({ ...BASE, PUBLIC_URL: typed }).PUBLIC_URL, 'https://a.example', typed)
  t.strictSame(settingsWarnings(readApiSettings({ ...BASE, PUBLIC_URL: 'HTTPS://a.example' }), {}), [])
  const PUBLIC_URL = readToolSettings({ PUBLIC_URL: ' https://bücher.example:8443' }).PUBLIC_URL
  t.equal(PUBLIC_URL, 'https://xn--bcher-kva.example:8443')
})

t.test('an invalid DNS_SERVER or missing OIDC_ISSUER is one line', async (t) => {
  for (const DNS_SERVER of ['foo:bar', 'foo:', 'a b', '127.0.0.1:0x5', '127.0.0.1:99999'])
    t.match(faults({ DNS_SERVER }), [/^DNS_SERVER must be host or host:port$/], DNS_SERVER)
  for (const DNS_SERVER of ['127.0.0.1', '127.0.0.1:5353', 'dns.example.com', '::1', '[::1]:53'])
    t.strictSame(faults({ DNS_SERVER }), [], DNS_SERVER)
  t.match(faults({ OIDC_ONLY: 'on' }), [/^OIDC_ISSUER is not set, but OIDC_ONLY is on/])
})

t.test('a misspelt setting warns unless the right one is set', async (t) => {
  const settings = readApiSettings(BASE)
  const env = { METRIC_TOKEN: 'x', PATH: '/', PUBLIC_URI: 'y', PUBLIC_URL: 'z' }
  const warnings = settingsWarnings(settings, env)
  t.strictSame(warnings, ['METRIC_TOKEN is not a setting. Did you mean METRICS_TOKEN?'])
})

t.test('warns if no team has verified DASHBOARD_FROM’s domain', async (t) => {
  const { url: DATABASE_URL } = await testDatabase(t)
  const settings = { DASHBOARD_FROM: 'login@nobody.test', PUBLIC_URL: 'https://example.com', PORT: '0' }
  const api = fork(join(import.meta.dirname, '../../api/main.ts'), {
    env: { ...bareEnvironment(), SECRET_KEY, DATABASE_URL, ...settings },
    execArgv: [],
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  let said = ''
  api.stdout?.on('data', (chunk: Buffer) => (said += chunk.toString()))
  await once(api, 'message')
  api.kill('SIGTERM')
  await once(api, 'close')
  t.match(said, /"domain":"nobody\.test",.*no team has verified the domain of DASHBOARD_FROM/)
})
