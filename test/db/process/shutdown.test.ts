/** The end of a process after signals. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { startApi } from '../../support/api-process.ts'
import { world } from '../../support/service.ts'
import t from '../../support/tap.ts'

t.test("a second signal exits immediately, its echo doesn't", async (t) => {
  const { service, key } = await world(t)
  const api = await startApi(t, service.url)
  // A slow upload, which the drain waits for.
  const upload = connect(Number(api.up.port), '127.0.0.1')
  upload.on('error', () => {})
  const head = ['POST /v1/emails HTTP/1.1', 'Host: x', `Authorization: Bearer ${key}`, 'Content-Length: 1000']
  upload.write([...head, 'Content-Type: application/json', 'Expect: 100-continue', '', ''].join('\r\n'))
  const [answer] = await once(upload, 'data')
  t.match(String(answer), /^HTTP\/1\.1 100 /)
  upload.write('{"begun')
  api.kill('SIGTERM')
  api.kill('SIGINT')
  const early = await Promise.race([api.exited, sleep(1_200, 'draining')])
  t.equal(early, 'draining', 'one Ctrl-C through a terminal and npm is one sign')
  // A second signal right after the first one counts as its echo, and a busy process may handle the first one
  // late.
  const again = setInterval(() => api.kill('SIGTERM'), 500)
  t.equal(await api.exited, 1)
  clearInterval(again)
  upload.destroy()
})
