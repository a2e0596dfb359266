/** The API as a process: settings, what is no HTTP, the drain. */
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { startApi } from '../support/api-process.ts'
import { testDatabase } from '../support/database.ts'
import { rowCounts } from '../support/rows.ts'
import { anEmail, makeTeam, startService } from '../support/service.ts'
import { until } from '../support/worker.ts'

async function start(t: Test) {
  const api = await startApi(t, (await testDatabase(t)).url)
  const port = Number(new URL(api.base).port)
  const say = async (text: string): Promise<string> =>
    await new Promise((resolve, reject) => {
      let heard = ''
      const socket = connect(port, '127.0.0.1', () => socket.write(text))
      socket.on('data', (chunk) => {
        heard += chunk.toString()
      })
      socket.once('end', () => resolve(heard))
      socket.once('error', reject)
    })
  return { api, say }
}

t.test('what is no HTTP is answered in the envelope too', async (t) => {
  const { say } = await start(t)
  for (const text of [
    'nonsense\r\n\r\n',
    'GET /v1/contacts/\u00fc@example.com HTTP/1.1\r\nHost: x\r\n\r\n',
    `GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(70_000)}\r\n\r\n`,
    'POST /v1/emails HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
  ]) {
    t.match(await say(text), /^HTTP\/1\.1 400 [\s\S]*\{"error":\{"code":"bad_request"/, text.slice(0, 40))
  }
  t.match(await say('CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n'), /^HTTP\/1\.1 405 [\s\S]*"method_not_allowed"/)
  const close = 'Connection: close\r\n\r\n'
  t.match(await say(`GET /health HTTP/1.1\r\n${close}`), /^HTTP\/1\.1 200 /)
  t.match(await say(`GET /health HTTP/1.1\r\nHost: x\r\nExpect: wonders\r\n${close}`), /^HTTP\/1\.1 200 /)
  t.match(await say(`GET /v1/contacts?a=1 HTTP/1.1\r\nHost: no host at all\r\n${close}`), /^HTTP\/1\.1 401 /)
})

t.test('stray bytes behind a request are answered after it, not in its place', async (t) => {
  const { say } = await start(t)
  const heard = await say('GET /ready HTTP/1.1\r\nHost: x\r\n\r\nnonsense\r\n\r\n')
  t.match(heard, /^HTTP\/1\.1 200 [\s\S]*HTTP\/1\.1 400 /)
})

t.test(
  'SIGTERM under load: every request is answered, every 201 is stored, and it exits with 0',
  async (t) => {
    const service = await startService(t)
    const team = await makeTeam(service)
    const api = await startApi(t, service.url)
    const answered: string[] = []
    const broken: string[] = []
    let routed = true
    const client = async (): Promise<void> => {
      while (routed) {
        try {
          const { status, body } = await api.call('POST', '/v1/emails', { key: team.key, body: anEmail() })
          if (status === 201) answered.push(body.id)
          else broken.push(String(status))
        } catch (error) {
          broken.push(String((error as Error).cause))
        }
      }
    }
    const clients = Array.from({ length: 20 }, client)
    await until('it is busy', () => answered.length > 50)
    api.kill('SIGTERM')
    // As long as a platform may take to send its clients elsewhere.
    await sleep(200)
    routed = false
    await Promise.all(clients)
    t.equal(await api.exited, 0)
    t.strictSame(broken, [])
    const { emails, jobs } = await rowCounts(service, team.id)
    t.strictSame([emails, jobs], [answered.length, answered.length])
  },
)

t.test('SIGTERM ends it with 0', async (t) => {
  const { api } = await start(t)
  api.kill('SIGTERM')
  t.equal(await api.exited, 0)
})
