/** Emails that servers defer until the deadline. Real workers, servers and webhooks. */
import { sql } from 'slonik'
import { emailById } from '../../../db/messages/emails/emails.sql.ts'
import { eventsOfEmail } from '../../../db/messages/emails/events.sql.ts'
import { bounceOverdue } from '../../../workers/channels/overdue.ts'
import type { Outcome } from '../../../workers/providers/provider.ts'
import { adminCli } from '../../support/admin.ts'
import { jobStates } from '../../support/rows.ts'
import { sendEmail, startService } from '../../support/service.ts'
import { startSmtpSink } from '../../support/smtp-sink.ts'
import t from '../../support/tap.ts'
import { beginWebhooks } from '../../support/webhooks.ts'
import { startWorker, until } from '../../support/worker.ts'

const HOUR_MS = 3_600_000
const NOW = new Date('2026-03-01T12:00:00Z')

const bounced = (outcomes: ReadonlyMap<string, Outcome>, ms: number | null) => {
  const since = ms === null ? null : new Date(NOW.getTime() - ms).toISOString()
  const history = { since, deferrals: 9, unknowns: 0 }
  return bounceOverdue(outcomes, { history, now: NOW, held_at: null, accepted_at: null }, HOUR_MS)
}
const effectOfLast = (detail: string) => {
  const outcome = bounced(new Map([['a@example.com', { kind: 'deferred', detail }]]), 2 * HOUR_MS)
  return [...outcome.values()].map((each) => (each.kind === 'refused' ? each.effect : each.kind))[0]
}

t.test("a deferred email's last response decides its effect on contacts", (t) => {
  for (const response of [
    '451 4.7.1 Rate limit exceeded',
    '450 4.7.1 Client host blocked using zen.spamhaus.org',
    '451 4.7.500 Server busy. Please try again later from [192.0.2.1]',
    '450 4.1.8 Sender address rejected: Domain not found',
  ])
    t.equal(effectOfLast(response), 'none', response)
  for (const response of [
    '450 4.1.1 User unknown',
    '452 4.2.2 Mailbox full',
    '451 4.3.0 Try again later',
    '450 4.2.1 Mailbox busy',
    'not finished within 60000 ms (EABORT)',
  ])
    t.equal(effectOfLast(response), 'soft', response)
  t.end()
})

t.test('only recipients still deferred at the deadline bounce', (t) => {
  const outcomes = new Map<string, Outcome>([
    ['a@example.com', { kind: 'accepted', detail: '250 ok' }],
    ['b@example.com', { kind: 'deferred', detail: '451 4.3.0 Later' }],
    ['c@example.com', { kind: 'unknown', detail: 'no answer' }],
  ])
  const after = (ms: number | null) => bounced(outcomes, ms)
  t.equal(after(null), outcomes)
  t.equal(after(HOUR_MS), outcomes)
  const late = after(HOUR_MS + 1)
  const deferred = late.get('b@example.com')
  t.match(deferred, { kind: 'refused', effect: 'soft', detail: /^4\.4\.7 .*451 4\.3\.0 Later$/ })
  const ends = [late.get('a@example.com'), late.get('c@example.com')]
  t.strictSame(ends, [outcomes.get('a@example.com'), outcomes.get('c@example.com')])
  t.end()
})

t.test('an email that servers defer for too long bounces', async (t) => {
  const service = await startService(t)
  const { database } = service
  const cli = adminCli({ DATABASE_URL: service.url, WEBHOOK_ALLOW: '127.0.0.0/8' })
  const { team, receiver } = await beginWebhooks(t, { service, cli })
  let reply: string | undefined = '450 4.2.1 Mailbox busy'
  const sink = await startSmtpSink(t, { onRcpt: () => reply })
  await service.call('POST', '/v1/contacts', { key: team.key, body: { email: 'ana@example.org' } })
  const id = await sendEmail(service, team, { to: ['ana@example.org'] })
  const row = () => emailById(database, team.id, id)
  await startWorker(t, service, { smtp_url: sink.url, retry_ms: 1_000 })
  await until('it bounces', async () => (await row())?.status === 'bounced')
  t.match(await row(), { provider_message_id: null, requeued_at: null })
  const [bounce, ...others] = (await eventsOfEmail(database, team.id, id)).filter(
    ({ kind }) => kind === 'bounced',
  )
  t.match(bounce, { recipient: 'ana@example.org', detail: /^4\.4\.7 .*450 4\.2\.1 Mailbox busy$/ })
  t.strictSame(others, [])
  const effects = await database.manyFirst(sql.unsafe`
    select effect from email_events where email_id = ${id} and kind = 'bounced'`)
  t.strictSame(effects, ['soft'])
  t.strictSame(await jobStates(service, id), [])
  const webhook = (type: string) => receiver.received.find((one) => one.body.type === type)?.body.data
  await until('its webhook comes', () => webhook('email.bounced') !== undefined)
  t.match(webhook('email.bounced'), { email_id: id, requeued_at: null, rank: 5 })
  reply = undefined
  t.match(await cli.json(['email', 'requeue', team.id, '--status', 'bounced', '--dry-run']), { ids: [id] })
  const { requeued_at } = await cli.json(['email', 'requeue', team.id, id])
  await until('it is sent', () => webhook('email.sent') !== undefined)
  t.match(webhook('email.sent'), { email_id: id, requeued_at, rank: 1 })
  t.equal(sink.messages().length, 1)
})
