/** Credential lookups of the SDK: whatever they respond, a send ends and the next one may start. */
import { execFileSync } from 'node:child_process'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Outcome } from '../../../../workers/providers/provider.ts'
import { createSesProvider } from '../../../../workers/providers/ses/adapter.ts'
import { startFlood } from '../../../support/flood.ts'
import { outgoingEmail } from '../../../support/outgoing-email.ts'
import { portOf } from '../../../support/port.ts'
import { startSesApi } from '../../../support/ses-api.ts'
import t, { type Test } from '../../../support/tap.ts'
import { until } from '../../../support/worker.ts'

const FULL_URI = 'AWS_CONTAINER_CREDENTIALS_FULL_URI'
const LATE = 1_500

/** A provider whose SDK has these settings and no keys. */
async function start(t: Test, env: Record<string, string>) {
  const { url, calls } = await startSesApi(t)
  const were = { ...process.env }
  t.teardown(() => {
    for (const name of Object.keys(process.env)) if (!(name in were)) delete process.env[name]
    Object.assign(process.env, were)
  })
  delete process.env.AWS_ACCESS_KEY_ID
  delete process.env.AWS_SECRET_ACCESS_KEY
  const files = { AWS_CONFIG_FILE: '/dev/null', AWS_SHARED_CREDENTIALS_FILE: '/dev/null' }
  Object.assign(process.env, { ...files, ...env })
  const timeouts = { credentials_ms: LATE }
  const provider = createSesProvider({ region: 'eu-west-1', max_connections: 5, endpoint: url, timeouts })
  t.teardown(() => provider.close())
  const send = async (): Promise<Outcome | undefined> => {
    const { outcomes } = await provider.send(outgoingEmail())
    return [...outcomes.values()][0]
  }
  return { provider, send, calls }
}

const NONE = { kind: 'sender', trouble: 'setup', detail: /^CredentialsProviderError/ }

const CREDENTIALS = JSON.stringify({
  ...{ AccessKeyId: 'AKIATEST', SecretAccessKey: 'test', Token: 'token' },
  Expiration: new Date(Date.now() + 3_600_000).toISOString(),
})

/** Starts a metadata service. */
async function serve(t: Test, answer: (response: ServerResponse, request: IncomingMessage) => void) {
  const server = createServer((request, response) => answer(response, request))
  return `http://127.0.0.1:${await portOf(t, server)}/credentials`
}

t.test('a key that fits no header is a sender failure', async (t) => {
  const keys = { AWS_ACCESS_KEY_ID: 'AKIATEST\n', AWS_SECRET_ACCESS_KEY: 'test' }
  const { send, calls } = await start(t, keys)
  t.match(await send(), { kind: 'sender', trouble: 'connection', detail: /Invalid character in header/ })
  t.strictSame(calls, [])
})

t.test('an endless metadata response is a sender failure', async (t) => {
  const flood = await startFlood(t, 'endless')
  const { provider, send, calls } = await start(t, { [FULL_URI]: flood.url })
  t.match(await send(), NONE)
  await until('it is cut off', () => flood.cut() > 0)
  t.ok(flood.sent() / flood.cut() < 8 * 1024 * 1024, `${flood.sent()} bytes in ${flood.cut()} answers`)
  t.match(await provider.check(), /^GetAccount failed: /)
  t.match(await provider.sender(), { key: 'ses:eu-west-1' }, 'nobody waits for the rate for ever')
  t.strictSame(calls, [])
})

t.test('a slow metadata service delays sends by its limit only', async (t) => {
  let isWell = false
  const url = await serve(t, (response) => {
    if (isWell) return void response.end(CREDENTIALS)
    const drip = setInterval(() => response.write(' '), 100)
    response.on('close', () => clearInterval(drip))
  })
  const { send, calls } = await start(t, { [FULL_URI]: url })
  const began = performance.now()
  t.match(await send(), NONE)
  t.ok(performance.now() - began < LATE + 10_000)
  isWell = true
  await until('it goes out', async () => (await send())?.kind === 'accepted')
  t.ok(calls.length > 0)
})

t.test('an instance metadata response that breaks off is requested again', async (t) => {
  let isWell = false
  const url = await serve(t, (response, { url: path = '' }) => {
    if (isWell) return void response.end(path.endsWith('/role') ? CREDENTIALS : 'role')
    response.writeHead(200, { 'Content-Length': '500' })
    response.write('{', () => response.destroy())
  })
  const { send } = await start(t, { AWS_EC2_METADATA_SERVICE_ENDPOINT: new URL(url).origin })
  t.match(await send(), NONE)
  isWell = true
  await until('it goes out', async () => (await send())?.kind === 'accepted')
})

t.test('a silent credentials process delays sends by its limit only', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'heliograph-aws-'))
  const within = (name: string) => join(directory, name)
  const [config, script, pids] = [within('config'), within('credentials.sh'), within('pids')]
  await writeFile(script, `#!/bin/sh\necho $$ >>${pids}\nexec sleep 20\n`)
  t.teardown(async () => {
    // The SDK and so this process would wait for it to end.
    execFileSync('/bin/sh', ['-c', `kill $(cat ${pids}) 2>/dev/null || true`])
    await rm(directory, { recursive: true, force: true })
  })
  await chmod(script, 0o755)
  await writeFile(config, `[profile slow]\ncredential_process = ${script}\n`)
  const { send, calls } = await start(t, { AWS_CONFIG_FILE: config, AWS_PROFILE: 'slow' })
  const began = performance.now()
  t.match(await send(), NONE)
  t.ok(performance.now() - began < LATE + 10_000)
  t.strictSame(calls, [])
})
