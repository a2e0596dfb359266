/** A web process and a worker with little memory, as in a small container. */
import { join } from 'node:path'
import { startApi } from '../support/api-process.ts'
import { bareEnvironment, SECRET_KEY } from '../support/environment.ts'
import { limitedNode } from '../support/memory-limit.ts'
import { procfileOptions } from '../support/procfile.ts'
import { ROOT } from '../support/program.ts'
import { runProgram } from '../support/programs.ts'
import { anEmail, makeTeam, startService } from '../support/service.ts'
import t from '../support/tap.ts'

const MIB = 1024 * 1024
/** Almost the largest body that a process with 256 MiB accepts. */
const LARGEST = 3.4 * MIB

const withFile = (bytes: number) => ({
  path: '/v1/emails',
  body: anEmail({ attachments: [{ filename: 'a.txt', content: 'QUJD'.repeat(bytes / 4 - 200) }] }),
})
const aBatch = (bytes: number) => ({
  path: '/v1/emails/batch',
  body: { emails: Array.from({ length: 50 }, () => anEmail({ html: 'x'.repeat(bytes / 50 - 300) })) },
})

t.test('a web process with 256 MiB survives large bodies', async (t) => {
  const service = await startService(t)
  const limited = await limitedNode(t, 256)
  // Without a control group, the setting limits the memory.
  const env: Record<string, string> = limited ? {} : { MEMORY_LIMIT_MB: '256' }
  const web = await startApi(t, service.url, env, undefined, limited?.execPath)
  const domains = ['a', 'b', 'c', 'd', 'e'].map((name) => `${name}.example.com`)
  const teams = await Promise.all(domains.map((domain) => makeTeam(service, { domain })))
  const postAll = async ({ path, body }: { path: string; body: unknown }) => {
    const text = JSON.stringify(body)
    const answers = teams.map(({ key }, at) =>
      web.call('POST', path, {
        key,
        raw: Buffer.from(text.replaceAll('@example.com', `@${domains[at]}`)),
        headers: { 'Content-Type': 'application/json' },
      }),
    )
    return (await Promise.all(answers)).map(({ status }) => status)
  }
  const all = (status: number) => teams.map(() => status)

  t.strictSame(await postAll(withFile(9 * MIB)), all(413))
  t.strictSame(await postAll(aBatch(9 * MIB)), all(413))
  t.strictSame(await postAll({ path: '/v1/emails', body: anEmail() }), all(201))
  for (let turn = 0; turn < 3; turn++) {
    t.strictSame(await postAll(withFile(LARGEST)), all(201))
    t.strictSame(await postAll(aBatch(LARGEST)), all(200))
  }
  t.equal(web.child.exitCode ?? web.child.signalCode, null)
})

t.test('a worker stops at the start below 256 MB', async (t) => {
  const env = { ...bareEnvironment(), DATABASE_URL: 'postgres://127.0.0.1:9/none', SECRET_KEY }
  const limited = await limitedNode(t, 200)
  for (const [program, settings] of [
    [process.execPath, { MEMORY_LIMIT_MB: '200' }],
    ...(limited ? [[limited.execPath, {}] as const] : []),
  ] as const) {
    const worker = [join(ROOT, 'workers/main.ts')]
    const ended = await runProgram(program, worker, {
      env: { ...env, SMTP_URL: 'smtp://127.0.0.1:9', ...settings },
    }).catch((error) => error)
    t.equal(ended.code, 1)
    t.match(ended.stderr, /MEMORY_LIMIT_MB: this process can use 200 MiB/)
  }
})

t.test('idle processes can return the memory of their start', async (t) => {
  for (const file of ['api/main.ts', 'workers/main.ts']) {
    const argv = [...procfileOptions(file), '--print', 'typeof globalThis.gc']
    const { stdout } = await runProgram(process.execPath, argv, { env: bareEnvironment() })
    t.equal(stdout.trim(), 'function', file)
  }
})
