/** Tracing of a request: from its response to the stored row and the worker's log line. */
import { pino } from 'pino'
import { startSmtpSandbox } from '../sandbox/smtp.ts'
import { anEmail, world } from '../support/service.ts'
import t from '../support/tap.ts'
import { startWorker, until } from '../support/worker.ts'

t.test('X-Request-Id leads from response to worker log', async (t) => {
  const { service, cli, team } = await world(t)
  const sandbox = await startSmtpSandbox({ port: 0 })
  t.teardown(() => sandbox.close())
  const body = anEmail({ to: ['refused@example.org', 'delivered@example.org'] })
  const headers = { 'X-Request-Id': 'traced-2' }
  const sent = await service.call('POST', '/v1/emails', { key: team.key, body, headers })
  t.equal(sent.headers.get('x-request-id'), 'traced-2')
  const lines: string[] = []
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) })
  await startWorker(t, service, { smtp_url: `smtp://127.0.0.1:${sandbox.port}`, log })
  await until('the worker logs it', async () => lines.some((line) => line.includes('"sent"')))
  const logged = lines.map((line) => JSON.parse(line)).find(({ msg }) => msg === 'sent')
  t.match(logged, {
    accepted: 1,
    refused: 1,
    ids: [sent.body.id],
    request_ids: ['traced-2'],
    reason: /^550 5\.1\.1/,
  })
  t.notMatch(lines.join(''), /example\.org/)
  t.match(await cli.json(['email', 'show', team.id, sent.body.id]), { http_request_id: 'traced-2' })
})
