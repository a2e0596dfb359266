/** The end of a process, as whoever sends the signals sees it. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { startApi } from '../../support/api-process.ts'
import { testDatabase } from '../../support/database.ts'

t.test('a second signal ends a draining process at once; the echo of the first does not', async (t) => {
  const api = await startApi(t, (await testDatabase(t)).url)
  // An upload that goes on: the drain would wait for it.
  const upload = connect(Number(api.up.port), '127.0.0.1')
  upload.on('error', () => {})
  upload.write('POST /hooks/whatsapp HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nbegun')
  await once(upload, 'connect')
  await sleep(100)
  api.kill('SIGTERM')
  api.kill('SIGINT')
  const early = await Promise.race([api.exited, sleep(1_200, 'draining')])
  t.equal(early, 'draining', 'one Ctrl-C through a terminal and npm is one sign')
  api.kill('SIGTERM')
  t.equal(await api.exited, 1)
  upload.destroy()
})
