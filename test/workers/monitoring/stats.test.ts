/** The counters of workers, as shown in the fleet's metrics of a web process. */
import { v7 as uuidv7 } from 'uuid'
import { emailById } from '../../../db/messages/emails/emails.sql.ts'
import { returnPath } from '../../../db/messages/emails/return-path.ts'
import { storeSignOfLife } from '../../../db/stats/fleet/fleet.sql.ts'
import { createWorkerStats } from '../../../workers/monitoring/stats.ts'
import { deliveryStatus } from '../../sandbox/reports.ts'
import { idleGauges } from '../../support/gauges.ts'
import { pauseSender } from '../../support/senders.ts'
import {
  METRICS_TOKEN,
  type Service,
  SMTP_REPORT_TOKEN,
  sendEmail,
  startService,
  world,
} from '../../support/service.ts'
import { startSmtpSink } from '../../support/smtp-sink.ts'
import t, { type Test } from '../../support/tap.ts'
import { aMessage, makeTemplate } from '../../support/whatsapp.ts'
import { startWorker, until } from '../../support/worker.ts'

async function start(t: Test, smtp_url?: string) {
  const { service, team } = await world(t)
  const stats = createWorkerStats(service.deps.metrics, 20)
  await startWorker(t, service, { stats, ...(smtp_url === undefined ? {} : { smtp_url }) })
  const send = () => sendEmail(service, team)
  return { service, team, send, stats }
}

/** Waits until the metrics contain this line. */
const shows = ({ call }: Service, line: string): Promise<void> =>
  until(line, async () => (await call('GET', '/metrics', { key: METRICS_TOKEN })).body.includes(`${line}\n`))

t.test('counts attempts, sends and jobs of a delivered email', async (t) => {
  const sink = await startSmtpSink(t)
  const { service, team, send, stats } = await start(t, sink.url)
  const id = await send()
  const labels = 'channel="email",provider="smtp",outcome="accepted"'
  await shows(service, `heliograph_delivery_seconds_count{${labels}} 1`)
  await shows(service, 'heliograph_send_seconds_count{channel="email"} 1')
  await shows(service, 'heliograph_jobs_total{queue="deliver-email",end="completed"} 1')
  await shows(service, 'heliograph_queued_messages{channel="email",older_than_seconds="0"} 0')
  t.ok(stats.role.senders?.()['deliver-email']?.startsWith('smtp:'))
  t.ok((stats.role.busy?.() ?? 0) > 0)

  const row = await emailById(service.database, team.id, id)
  if (!row) throw new Error('the email is gone')
  const mail_from = returnPath(service.deps.secrets, row, 'example.com') ?? ''
  const headers = { Authorization: `Bearer ${SMTP_REPORT_TOKEN}`, 'Content-Type': 'message/rfc822' }
  const bounce = () => {
    const failed = { recipient: 'ana@example.org', action: 'failed', status: '5.2.2' } as const
    return deliveryStatus({ mail_from, raw: Buffer.from('') }, [failed])
  }
  const mail = (sender: string, subject: string) =>
    Buffer.from(`Return-Path: <${sender}>\r\nTo: ${mail_from}\r\nSubject: ${subject}\r\n\r\nHello\r\n`)
  const reports = {
    applied: bounce(),
    repeated: bounce(),
    ignored: mail('bo@example.net', 'Re: Hello'),
    auto_reply: mail('bo@example.net', 'Automatic reply: Hello'),
    parked: mail('', 'failure notice'),
  }
  for (const [outcome, raw] of Object.entries(reports)) {
    t.equal((await service.call('POST', '/hooks/smtp', { headers, raw })).status, 200)
    await shows(service, `heliograph_reports_total{provider="smtp",outcome="${outcome}"} 1`)
  }
})

t.test('a relay outage changes a metric within half a minute', async (t) => {
  const { service, send } = await start(t)
  await send()
  await shows(service, 'heliograph_senders{provider="smtp",state="paused"} 1')
  const { body } = await service.call('GET', '/metrics', { key: METRICS_TOKEN })
  t.match(body, /heliograph_delivery_seconds_count\{channel="email",provider="smtp",outcome="sender"\} [1-9]/)
  t.match(body, /heliograph_queued_messages\{channel="email",older_than_seconds="0"\} 1/)
})

t.test('an unused old relay is not reported as paused', async (t) => {
  const service = await startService(t)
  const worker = { id: uuidv7(), kind: 'worker', host: 'w1', pid: 1, queues: ['deliver-email'] } as const
  const gauges = idleGauges()
  const senders = { 'deliver-email': 'smtp:new.example.test:25' }
  const life = { ...worker, gauges, senders, completed: {}, started_at: new Date() }
  await storeSignOfLife(service.database, life, [])
  await pauseSender(service.database, { key: 'smtp:old.example.test:25', ceiling: 100 }, 600, 'gone')
  await shows(service, 'heliograph_senders{provider="smtp",state="paused"} 0')
  await pauseSender(service.database, { key: 'smtp:new.example.test:25', ceiling: 100 }, 600, 'down')
  await shows(service, 'heliograph_senders{provider="smtp",state="paused"} 1')
})

t.test('accepted WhatsApp messages are counted, queued ones are reported', async (t) => {
  const { service, team } = await start(t)
  const { id } = await makeTemplate(service, team.id)
  const body = aMessage(id, { to: ['+15555550101', '+15555550102'] })
  t.equal((await service.call('POST', '/v1/whatsapp/messages', { key: team.key, body })).status, 201)
  await shows(service, 'heliograph_accepted_total{channel="whatsapp"} 2')
  await shows(service, 'heliograph_queued_messages{channel="whatsapp",older_than_seconds="0"} 2')
})
