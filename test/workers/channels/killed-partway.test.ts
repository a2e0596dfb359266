/** A worker that is killed before it recorded accepted and deferred recipients. */
import { deliveryStatus } from '../../sandbox/reports.ts'
import type { SandboxMessage } from '../../sandbox/smtp.ts'
import { anEmail, makeTeam, SMTP_REPORT_TOKEN, startService } from '../../support/service.ts'
import { startSmtpSink } from '../../support/smtp-sink.ts'
import t from '../../support/tap.ts'
import { type OurProcess, startProcess, until } from '../../support/worker.ts'

t.test("retries a deferred recipient despite another's early report", async (t) => {
  const service = await startService(t)
  const team = await makeTeam(service)
  const [now, later] = ['now@example.org', 'later@example.org']
  const killed = Promise.withResolvers<SandboxMessage>()
  let worker: OurProcess | undefined
  const sink = await startSmtpSink(t, {
    onRcpt: (recipient) => (recipient === later && worker ? '451 4.3.0 Try again later' : undefined),
    async onMessage(message) {
      if (!worker) return undefined
      worker.kill('SIGKILL')
      await worker.exited
      worker = undefined
      killed.resolve(message)
      return undefined
    },
  })
  const env = { DATABASE_URL: service.url, SMTP_URL: sink.url }
  worker = await startProcess(t, 'workers/main.ts', env)
  const body = anEmail({ to: [now, later] })
  const { body: row } = await service.call('POST', '/v1/emails', { key: team.key, body })
  const { mail_from, raw } = await killed.promise
  const report = deliveryStatus({ mail_from, raw }, [
    { recipient: now, action: 'delivered', status: '2.0.0' },
  ])
  const { status } = await service.call('POST', '/hooks/smtp', {
    key: SMTP_REPORT_TOKEN,
    raw: new Uint8Array(report),
    headers: { 'Content-Type': 'message/rfc822' },
  })
  t.equal(status, 200)
  await startProcess(t, 'workers/main.ts', env)
  await until('it has come to whom it was put off for', () => sink.messages().length > 1, 60)
  t.strictSame(sink.recipients(), [[now], [later]])
  t.match(sink.last().raw.toString(), row.id)
})
