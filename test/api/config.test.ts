/** The settings of an API process: what is half set or guessable stops it, in one clear line each. */
import t from 'tap'
import { readApiSettings, reservedPrefixes } from '../../api/config.ts'
import { portFault, SettingsFault } from '../../db/process/config.ts'
import { startApi } from '../support/api-process.ts'
import { testDatabase } from '../support/database.ts'

const BASE = {
  DATABASE_URL: 'postgres://localhost/x',
  SECRET_KEY: 'a secret key for tests, thirty-two characters or more',
}

/** The lines that an API with these settings stops with; none when it starts. */
const faults = (env: Record<string, string>): string[] => {
  try {
    readApiSettings({ ...BASE, ...env })
    return []
  } catch (error) {
    return String(error)
      .split('\n')
      .slice(1)
      .map((line) => line.trim())
  }
}

t.test('a token that could be guessed is refused', async (t) => {
  for (const name of ['METRICS_TOKEN', 'HIREFIRE_TOKEN', 'SMTP_REPORT_TOKEN']) {
    t.match(faults({ [name]: 'a' }), [new RegExp(`^${name} must be .*16`)])
    t.strictSame(faults({ [name]: 'sixteen-or-more-' }), [])
  }
})

t.test(
  'an app secret without a verify token, or the other way round, is refused by the one that lacks',
  async (t) => {
    t.match(faults({ WHATSAPP_APP_SECRET: 'x' }), [/^WHATSAPP_VERIFY_TOKEN is missing: /])
    t.match(faults({ WHATSAPP_VERIFY_TOKEN: 'x' }), [/^WHATSAPP_APP_SECRET is missing: /])
    t.strictSame(faults({ WHATSAPP_APP_SECRET: 'x', WHATSAPP_VERIFY_TOKEN: 'x' }), [])
  },
)

t.test('a port that this user may not have, or that is taken, is one line', async (t) => {
  const said = (code: string) => portFault('PORT', 80, Object.assign(new Error('listen'), { code })).message
  t.match(said('EACCES'), /^ {2}PORT 80 is not for this user: choose one above 1023$/m)
  t.match(said('EADDRINUSE'), /^ {2}PORT 80 is taken by another program$/m)
  t.notOk(portFault('PORT', 80, new Error('else')) instanceof SettingsFault)
})

t.test('HOST is the only address that is listened to', async (t) => {
  const { url } = await testDatabase(t)
  const api = await startApi(t, url, { HOST: '127.0.0.2' })
  t.equal((await fetch(`${api.base.replace('127.0.0.1', '127.0.0.2')}/health`)).status, 200)
  await t.rejects(fetch(`${api.base}/health`))
})

t.test('reserved header prefixes are beginnings of header names, separated by commas', async (t) => {
  const settings = readApiSettings({ ...BASE, RESERVED_HEADER_PREFIXES: 'X-SMTPAPI, X-MC-,' })
  t.strictSame(reservedPrefixes(settings), ['X-SMTPAPI', 'X-MC-'])
  t.strictSame(reservedPrefixes(readApiSettings(BASE)), [])
  t.match(faults({ RESERVED_HEADER_PREFIXES: 'X-MC-,a b' }), [/^RESERVED_HEADER_PREFIXES must be beginnings/])
})
