/** All drivers read DATABASE_URL as libpq does: TLS, several servers and sockets. */
import { join } from 'node:path'
import { databaseUrlFault, readDatabaseUrl } from '../../../db/postgres/address.ts'
import { connect } from '../../../db/postgres/connect.ts'
import { listen } from '../../../db/postgres/listen.ts'
import { databaseRejection, openDatabase } from '../../../db/postgres/pool.ts'
import { readToolSettings } from '../../../db/process/config.ts'
import { openConsumer } from '../../../db/queue/boss.ts'
import { testDatabase, testServer } from '../../support/database.ts'
import { startDatabaseTls, startDatabaseWithoutTls } from '../../support/database-tls.ts'
import t from '../../support/tap.ts'

const { url } = await testDatabase(t)
const { port, authority } = await startDatabaseTls(t, url)
const plain = await startDatabaseWithoutTls(t, url)
const at = (host: string, to: number | string, query = ''): string => {
  const changed = Object.assign(new URL(url), { port: String(to) })
  return `${changed.href.replace(changed.hostname, host)}${query}`
}
const tls = (query: string, host = 'localhost'): string => at(host, port, query)

/** Connects with slonik, pg-boss and pg. @returns the error of each, or null. */
async function refusals(to: string): Promise<(string | null)[]> {
  const tries = [
    async () => await (await openDatabase(to, { size: 1 })).end(),
    async () => await (await openConsumer(to, { connections: 1, onError: () => {} })).stop(0),
    async () => await (await connect(to)).end(),
  ]
  return Promise.all(
    tries.map(async (attempt) => {
      try {
        await attempt()
        return null
      } catch (error) {
        return databaseRejection(error) ?? String(error)
      }
    }),
  )
}

const ALL_FINE = [null, null, null]

t.test('sslmode has the meaning of libpq in every driver', async (t) => {
  const root = `&sslrootcert=${encodeURIComponent(authority)}`
  for (const query of ['allow', 'prefer', 'require', 'no-verify', `verify-full${root}`, `require${root}`])
    t.strictSame(await refusals(tls(`?sslmode=${query}`)), ALL_FINE, query)
  t.strictSame(await refusals(tls(`?sslmode=verify-ca${root}`, '127.0.0.1')), ALL_FINE, 'of whatever name')
  t.strictSame(await refusals(`${plain}?sslmode=prefer`), ALL_FINE, 'plain where the server offers no TLS')
})

t.test('an error names DATABASE_URL and the fix', async (t) => {
  const each = async (to: string, words: RegExp) => {
    for (const said of await refusals(to)) t.match(said, words)
  }
  await each(tls('?sslmode=verify-full'), /DATABASE_URL.*self-signed.*sslrootcert=FILE.*sslmode=require/)
  const root = `&sslrootcert=${encodeURIComponent(authority)}`
  await each(tls(`?sslmode=verify-full${root}`, '127.0.0.1'), /DATABASE_URL.*another name.*sslmode=verify-ca/)
  await each(tls(''), /rejects DATABASE_URL: .*no encryption\. Add \?sslmode=require/)
  await each(`${plain}?sslmode=require`, /DATABASE_URL.*support TLS.*sslmode=disable/)
})

t.test('PGSSLMODE and PGSSLROOTCERT apply unless the URL has them', async (t) => {
  const read = (to: string, env: Record<string, string>) => readToolSettings({ DATABASE_URL: to, ...env })
  const fromPlatform = read(tls(''), { PGSSLMODE: 'no-verify' }).DATABASE_URL ?? ''
  t.strictSame(await refusals(fromPlatform), ALL_FINE)
  const whole = read(tls(''), { PGSSLMODE: 'verify-full', PGSSLROOTCERT: authority }).DATABASE_URL ?? ''
  t.strictSame(await refusals(whole), ALL_FINE)
  const own = tls('?sslmode=require')
  t.equal(read(own, { PGSSLMODE: 'disable' }).DATABASE_URL, own)
})

t.test('chooses the first server that accepts writes', async (t) => {
  const { host, hostname, port: real } = new URL(url)
  const several = (servers: string) => url.replace(host, servers)
  t.strictSame(await refusals(several(`127.0.0.1:1,${hostname}:${real}`)), ALL_FINE)
  t.strictSame(await refusals(`${url.replace(host, '')}?host=127.0.0.1,${hostname}&port=1,${real}`), ALL_FINE)
  const refused = `127.0.0.1:1,127.0.0.1:2`
  t.match(await refusals(several(refused)), [/ECONNREFUSED|refused/i, /ECONNREFUSED/, /ECONNREFUSED/])
  const readOnly = `${url}?options=-c%20default_transaction_read_only%3Don`
  const { hosts } = readDatabaseUrl(readOnly.replace(host, `${host},${host}`))
  t.equal(hosts.length, 2)
  t.match(await refusals(readOnly.replace(host, `${host},${host}`)), [/none of its servers accepts writes/])
})

t.test('?host= names a host or the directory of a socket', async (t) => {
  const { hostname, port: real, pathname, username } = new URL(url)
  const bare = url.replace(new URL(url).host, '')
  t.strictSame(await refusals(`${bare}?host=${hostname}&port=${real}`), ALL_FINE)
  const [socket] = readDatabaseUrl(`postgres://${username}@${pathname}?host=/run/postgresql`).hosts
  t.match(socket, { host: '/run/postgresql', user: username, database: pathname.slice(1) })
  t.match(readDatabaseUrl('postgres://u:p@%2Frun%2Fpostgresql/db').hosts, [{ host: '/run/postgresql' }])
  t.match(readDatabaseUrl('postgres://u:p@[::1]:5433/db').hosts, [{ host: '::1', port: 5433 }])
  t.match(readDatabaseUrl('postgres://u:p%40%3A%2F%23%3Fé@h/db').hosts, [{ password: 'p@:/#?é', host: 'h' }])
})

t.test('errors explain the problem without parts of the URL', async (t) => {
  const faults: [url: string, words: RegExp][] = [
    ['banana', /^must be a postgres:\/\/ URL/],
    ['mysql://u:hunter2@h/db', /^must be a postgres:\/\/ URL/],
    ['postgres://u:hunter2#@h/db', /^must be a postgres:\/\/ URL\. Percent-encode .* in the password$/],
    ['postgres://u:hunter2@h:port/db', /^must be a postgres:\/\/ URL/],
    ['postgres://u:hunter2@h/db?sslmode=verify_full', /^has an unknown sslmode: it must be one of disable, /],
    ['postgres://u:hunter2@h/db?ssl=maybe', /^has an unknown sslmode/],
    ['postgres://u:hunter2@h/db?sslmode=verify-ca', /^needs sslrootcert=FILE/],
    [
      `postgres://u:hunter2@h/db?sslrootcert=${join(t.testdirName, 'none.pem')}`,
      /can't be read: .*none\.pem \(ENOENT\)/,
    ],
    [
      'postgres://u:hunter2@h/db?target_session_attrs=standby',
      /^has a target_session_attrs that selects a standby/,
    ],
    ['postgres://u:p@ss#hunter2@h/db', /^must be a postgres:\/\/ URL\. Percent-encode .* in the password$/],
    ['postgres://u:p@ss/hunter2@h/db', /^must be a postgres:\/\/ URL\. Percent-encode .* in the password$/],
    ['postgres://u:p@ss?hunter2=1@h/db', /^must be a postgres:\/\/ URL\. Percent-encode .* in the password$/],
    ['postgres://u:1/hunter2@h/db', /^must be a postgres:\/\/ URL\. Percent-encode .* in the password$/],
    [
      'postgres://u:hunter2@h/db?ssl_mode=require',
      /^has an unknown option ssl_mode: did you mean sslmode\?$/,
    ],
    ['postgres://u:hunter2@h/db?sslMode=require', /^has an unknown option sslMode: did you mean sslmode\?$/],
    [
      'postgres://u:hunter2@h/db?sslrootcrt=ca.pem',
      /^has an unknown option sslrootcrt: it must be one of .*sslrootcert/,
    ],
  ]
  for (const [wrong, words] of faults) {
    t.match(databaseUrlFault(wrong), words, wrong)
    t.notMatch(databaseUrlFault(wrong), /hunter2/)
    t.throws(() => readToolSettings({ DATABASE_URL: wrong }), /^ {2}DATABASE_URL /m)
  }
  t.equal(databaseUrlFault(testServer().url), null)
  const managed = 'postgres://u%40server:p@h/db?sslmode=require&channel_binding=require&connect_timeout=10'
  t.match(readDatabaseUrl(managed).hosts, [{ user: 'u@server', enableChannelBinding: true }])
})

t.test('the listener reads the URL in the same way', async () => {
  const heard = Promise.withResolvers<void>()
  const listener = listen(tls('?sslmode=require'), 'heliograph_test', {
    onPayload: () => {},
    onReconnect: heard.resolve,
  })
  await heard.promise
  await listener.close()
})
