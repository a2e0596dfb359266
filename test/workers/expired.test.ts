/** Expired messages fail, and delay no others. */
import { sql } from 'slonik'
import { object } from 'yup'
import { eventsOfEmail } from '../../db/messages/emails/events.sql.ts'
import { showEmail } from '../../db/messages/emails/show.ts'
import { queuedByAge } from '../../db/stats/fleet/fleet.sql.ts'
import { adminCli } from '../support/admin.ts'
import { shiftClock } from '../support/clock.ts'
import { jobStates, jobsOf } from '../support/rows.ts'
import { noteTrouble } from '../support/senders.ts'
import { sendEmail, worldOf } from '../support/service.ts'
import { shareService } from '../support/shared-service.ts'
import { startSmtpSink } from '../support/smtp-sink.ts'
import t from '../support/tap.ts'
import { giveUpAll, startWorker, until } from '../support/worker.ts'

const renewed = await shareService(t)

t.test('an expired email fails without a dead letter', async (t) => {
  const { service, team } = await worldOf(await renewed())
  const sink = await startSmtpSink(t)
  const id = await sendEmail(service, team, { expires_in: 60 })
  await shiftClock(service.database, 61)
  await startWorker(t, service, { smtp_url: sink.url })
  const events = () => eventsOfEmail(service.database, team.id, id)
  await until('it is given up', async () => (await events()).some(({ kind }) => kind === 'gave_up'))
  t.match((await events())[0]?.detail, /^expired: /)
  await until('its job is gone', async () => (await jobStates(service, id)).length === 0)
  const deps = { ...service.deps, tx: service.database, now: new Date() }
  const shown = await showEmail({ ...deps, publicUrl: undefined }, team.id, id)
  t.match(shown, { status: 'queued', waiting: { state: 'failed', last_response: /^expired: / } })
  t.equal(sink.messages().length, 0)
  const dead = await service.database.exists(sql.type(object())`
    select from pgboss.job where name = 'deliver-email-dead'`)
  t.notOk(dead)
  const queued = await queuedByAge(service.database, [0], 100)
  const emails = queued.find(({ channel }) => channel === 'email')
  t.match(emails, { messages: 0 }, 'nothing waits to be delivered')
})

t.test("an email that expired during an outage doesn't probe the relay", async (t) => {
  const { service, team } = await worldOf(await renewed())
  const { database } = service
  for (let count = 0; count < 5; count++) await sendEmail(service, team, { expires_in: 60 })
  const lasting = await sendEmail(service, team)
  const sink = await startSmtpSink(t)
  const relay = `smtp:${new URL(sink.url).host}`
  await database.transaction((tx) =>
    noteTrouble(
      tx,
      { key: relay, ceiling: 200 },
      { kind: 'connection', words: 'refused', began_at: new Date() },
    ),
  )
  await shiftClock(database, 3_600)
  await startWorker(t, service, { smtp_url: sink.url })
  await until('it is sent', () => sink.messages().length === 1)
  t.match(sink.last().raw.toString(), lasting)
  t.match(
    await database.any(
      sql.unsafe`select count(*)::int as count from email_states where expired_at is not null`,
    ),
    [{ count: 5 }],
  )
})

t.test('an expired dead letter is not sent by a redrive', async (t) => {
  const { service, team } = await worldOf(await renewed())
  const sink = await startSmtpSink(t)
  const id = await sendEmail(service, team, { expires_in: 60 })
  const other = await sendEmail(service, team, { to: ['other@example.org'] })
  await giveUpAll(service, 'deliver-email')
  await shiftClock(service.database, 61)
  const cli = adminCli({ DATABASE_URL: service.url })
  t.match(await cli.json(['queue', 'redrive', 'deliver-email']), { redriven: 2 })
  await startWorker(t, service, { smtp_url: sink.url })
  await until('both jobs are gone', async () => (await jobsOf(service, team.id)).length === 0)
  t.strictSame(sink.recipients(), [['other@example.org']])
  t.match(await cli.json(['email', 'show', team.id, other]), { waiting: null })
  t.match(await cli.json(['email', 'show', team.id, id]), {
    waiting: { state: 'failed', last_response: /^expired: / },
  })
  t.match(await cli.json(['queue', 'status']), [{ queue: 'deliver-email', dead: 0 }], 'no dead letter again')
})
