/** The nginx configuration in db/README.md, *TLS and proxies*, in front of a web process. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { adminCli } from '../../support/admin.ts'
import { startApi } from '../../support/api-process.ts'
import { makeCertificate } from '../../support/certificate.ts'
import { freePort } from '../../support/free-port.ts'
import { ROOT } from '../../support/program.ts'
import { programMissing } from '../../support/programs.ts'
import { anEmail, world } from '../../support/service.ts'
import t, { type Test } from '../../support/tap.ts'
import { until } from '../../support/worker.ts'

const NAME = 'mail.example.com'
const MIB = 1024 * 1024
const missing = await programMissing('nginx', 'nginx-light')

/** Starts nginx with the document's lines, and with these ports and files. @returns the certificate */
async function startNginx(t: Test, { from, to }: { from: number; to: string }): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'heliograph-nginx-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  await chmod(folder, 0o755)
  const { pem, key_pem } = makeCertificate([NAME])
  const files = { pem: join(folder, 'own.pem'), key: join(folder, 'own.key') }
  await writeFile(files.pem, pem)
  await writeFile(files.key, key_pem)
  const [, lines = ''] =
    /```nginx\n([\s\S]*?)```/.exec(await readFile(join(ROOT, 'db/README.md'), 'utf8')) ?? []
  const own = lines
    .replace('127.0.0.1:3000', to)
    .replace('listen 443', `listen 127.0.0.1:${from}`)
    .replace(`/etc/ssl/${NAME}.pem`, files.pem)
    .replace(`/etc/ssl/${NAME}.key`, files.key)
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${join(folder, name)};`,
  )
  const file = join(folder, 'nginx.conf')
  await writeFile(
    file,
    `daemon off; pid ${folder}/pid; error_log stderr; events {} http { access_log off; ${paths.join(' ')}\n${own}}`,
  )
  const nginx = spawn('nginx', ['-p', folder, '-c', file], { stdio: 'ignore' })
  const ended = once(nginx, 'exit')
  t.teardown(async () => {
    nginx.kill('SIGQUIT')
    await ended
  })
  return pem
}

t.test('behind nginx as db/README.md sets it', { skip: missing ?? false }, async (t) => {
  const { service, team } = await world(t)
  const from = await freePort()
  const api = await startApi(t, service.url, { PUBLIC_URL: `https://${NAME}` })
  const ca = await startNginx(t, { from, to: new URL(api.base).host })
  const ask = async (
    method: string,
    path: string,
    headers: Record<string, string> = {},
    body?: string | Buffer,
  ) => {
    const asked = request({ host: '127.0.0.1', port: from, servername: NAME, ca, method, path, agent: false })
    for (const [name, value] of Object.entries({ Host: NAME, ...headers })) asked.setHeader(name, value)
    asked.end(body)
    const [response] = await once(asked, 'response')
    return { status: response.statusCode, headers: response.headers, text: await text(response) }
  }
  const key = { Authorization: `Bearer ${team.key}` }
  await until('nginx answers', () =>
    ask('GET', '/ready').then(
      ({ status }) => status === 200,
      () => false,
    ),
  )

  const sent = await ask(
    'POST',
    '/v1/emails',
    { ...key, 'Content-Type': 'application/json', 'X-Request-Id': 'proxy-17' },
    JSON.stringify(anEmail()),
  )
  t.match(sent, {
    status: 201,
    headers: { 'x-request-id': 'proxy-17', 'strict-transport-security': undefined },
  })

  const upload = (bytes: number) =>
    ask(
      'POST',
      '/v1/attachments?filename=a.bin',
      { ...key, 'Content-Type': 'application/octet-stream' },
      Buffer.alloc(bytes, 1),
    )
  t.equal((await upload(25 * MIB)).status, 201)
  const larger = await upload(25 * MIB + 1)
  t.match([larger.status, JSON.parse(larger.text)], [413, { error: { code: 'payload_too_large' } }])
  t.match(await upload(26 * MIB + 1), { status: 413, text: /nginx/ })

  const page = await ask('GET', '/dashboard/login')
  t.match(page, { status: 200, headers: { 'strict-transport-security': 'max-age=31536000' } })
  const cli = adminCli({ DATABASE_URL: service.url, PUBLIC_URL: `https://${NAME}` })
  const { url } = await cli.json(['login', 'ana@example.com', '--operator'])
  const form = { 'Content-Type': 'application/x-www-form-urlencoded', Origin: `https://${NAME}` }
  const signedIn = await ask('POST', new URL(url).pathname, { ...form, 'X-Forwarded-Proto': 'http' })
  t.match(signedIn, { status: 303, headers: { 'set-cookie': [/^__Host-heliograph=.*; Secure/] } })
})
