/** The verbs of senders, paused queues, and requeues by filter. DECISIONS: Requeue. */
import { sql } from 'slonik'
import { number, object, string } from 'yup'
import { plural } from '../../../db/plural.ts'
import { adminCli } from '../../support/admin.ts'
import { runClock, stopClock } from '../../support/clock.ts'
import { insertEmailRows } from '../../support/email-rows.ts'
import { noteRecovery, noteTrouble } from '../../support/senders.ts'
import { openStore } from '../../support/stored-emails.ts'
import t from '../../support/tap.ts'

const store = await openStore(t)
const { database } = store
const cli = adminCli({ DATABASE_URL: store.url })
const SENDER = { key: 'smtp:relay.test', ceiling: 200, on_demand: true }
const START = Date.now() - 60_000
const at = (seconds: number): Date => new Date(START + seconds * 1_000)

const trouble = async (seconds: number, began = seconds, words = '554 5.7.1 No') => {
  await stopClock(database, at(seconds))
  const trouble = { kind: 'setup', words, began_at: at(began) } as const
  return database.transaction((tx) => noteTrouble(tx, SENDER, trouble))
}

t.test('pauses grow to 30 s, and older failures change nothing', async (t) => {
  t.equal(await trouble(0), 2)
  t.equal(await trouble(1, -5), null)
  t.strictSame(
    [await trouble(3), await trouble(8), await trouble(17), await trouble(34), await trouble(60, 50)],
    [4, 8, 16, 30, 30],
  )
})

t.test('sender list shows pauses, and sender resume ends one', async (t) => {
  const [shown] = await cli.json(['sender', 'list'])
  t.match(shown, {
    key: 'smtp:relay.test',
    state: 'paused',
    reason: '554 5.7.1 No',
    troubles: 6,
    events: [{ kind: 'paused', detail: '554 5.7.1 No' }],
  })
  t.equal(shown.events.length, 1, 'stored once, not at each probe')
  t.match(await cli.json(['sender', 'resume', 'smtp:relay.test']), { state: 'sending', paused_until: null })
  t.match(await cli.json(['sender', 'list']), [{ state: 'sending', events: [{ kind: 'resumed' }, Object] }])
  t.match(await cli.fault(['sender', 'resume', 'smtp:nobody.test']), /No sender smtp:nobody.test/)
})

t.test('an accepted message started after the failure ends it once', async (t) => {
  t.teardown(() => runClock(database))
  await trouble(70)
  await stopClock(database, at(80))
  const recover = (began: number) => database.transaction((tx) => noteRecovery(tx, SENDER, at(began)))
  t.notOk(await recover(69))
  t.ok(await recover(75))
  t.notOk(await recover(76))
  t.equal(await trouble(81, 74), null, 'a late fault of before')
})

t.test('queue pause stops a queue, and queue status shows it', async (t) => {
  t.strictSame(await cli.json(['queue', 'pause', 'deliver-email']), { queue: 'deliver-email', paused: true })
  t.match(await cli.json(['queue', 'status']), [{ queue: 'deliver-email', paused: true }])
  const id = await store.team()
  const row = await store.email(id)
  t.match(await cli.json(['email', 'show', id, row.id]), {
    waiting: { state: 'not_taken_yet', queue_paused: true },
  })
  t.match(await cli.json(['email', 'requeue', id, row.id]), { paused: [{ what: 'queue deliver-email' }] })
  t.strictSame(await cli.json(['queue', 'resume', 'deliver-email']), {
    queue: 'deliver-email',
    paused: false,
  })
})

t.test('a WhatsApp queue and its parts pause and resume together', async (t) => {
  const [whole, part] = ['deliver-whatsapp', 'deliver-whatsapp-parts']
  const paused = async () => {
    const queues: { queue: string; paused: boolean }[] = await cli.json(['queue', 'status'])
    return queues.flatMap(({ queue, paused }) => (paused ? [queue] : []))
  }
  await cli.json(['queue', 'pause', whole])
  t.strictSame(await paused(), [whole, part])
  await database.query(sql.unsafe`delete from paused_queues where queue = ${part}`)
  t.strictSame(await paused(), [whole, part], 'also if 0.1.0 paused it')
  await cli.json(['queue', 'resume', part])
  t.strictSame(await paused(), [])
  await cli.json(['queue', 'pause', part])
  t.strictSame(await paused(), [whole, part])
  await cli.json(['queue', 'resume', whole])
  t.strictSame(await paused(), [])
})

t.test('requeue by filter runs in batches, audited once', async (t) => {
  const id = await store.team()
  const first = await store.email(id)
  const many = 1_201
  const copies = sql.fragment`
    select a.team_id, overlay(a.id::text placing lpad(to_hex(n), 12, '0') from 25)::uuid as id, a.domain_id,
      a.from_address, a.to_emails, a.subject, a.html, a.tags, a.created_at, a.reply_to, a.http_request_id,
      s.status, s.size_kb, s.provider_message_id
    from accepted_emails a join email_states s on s.team_id = a.team_id and s.id = a.id, generate_series(2, ${many}) n
    where a.id = ${first.id}`
  await insertEmailRows({ database }, copies)
  const made = await cli.json(['email', 'requeue', id, '--status', 'queued'])
  t.match(made, { requeued: many, dry_run: false })
  const rows = await database.any(sql.type(object({ id: string().defined() }))`
    select id from email_states where team_id = ${id} and requeued_at is not null order by id`)
  const ids = rows.map((row) => row.id)
  t.strictSame(made.ids, ids)
  const written = object({ events: number().defined(), transactions: number().defined() })
  const { events, transactions } = await database.one(sql.type(written)`
    select count(*) as events, count(distinct xmin::text) as transactions
    from email_events where team_id = ${id} and kind = 'requeued'`)
  t.equal(events, many)
  t.ok(transactions > 1, 'in more than one transaction')
  const [job] = await cli.json(['job', 'list', '--team', id])
  t.match(job, { kind: 'email.requeue', done: many, total: many, result: { changed: many }, fault: null })
  const entries = await cli.json(['audit', 'list', '--team', id])
  const [entry, ...others] = entries.filter(({ action }: { action: string }) => action.endsWith('requeue'))
  t.match(entry, { action: 'email.requeue', subject: plural(many, 'email'), detail: 'status: queued' })
  t.strictSame(others, [])
})

t.test('email requeue includes rejected emails only with --force', async (t) => {
  const id = await store.team()
  const [queued, refused, taken] = [await store.email(id), await store.email(id), await store.email(id)]
  await database.query(sql.unsafe`update email_states set status = 'bounced' where id = ${refused.id}`)
  await database.query(sql.unsafe`
    update email_states set status = 'bounced', provider_message_id = 'p' where id = ${taken.id}`)
  t.match(await cli.fault(['email', 'requeue', id]), /Specify an ID, or a filter/)
  const fault = await cli.fault(['email', 'requeue', id, refused.id])
  t.match(fault, /The email was rejected permanently \(status: bounced\)/)
  const dry = await cli.json(['email', 'requeue', id, '--since', '2026-01-01', '--force', '--dry-run'])
  t.match(dry, { requeued: 2, dry_run: true, requeued_at: null })
  t.match(await cli.json(['email', 'show', id, refused.id]), { status: 'bounced', requeued_at: null })
  t.strictSame((await cli.json(['email', 'requeue', id, '--status', 'queued'])).ids, [queued.id])
  const forced = await cli.json(['email', 'requeue', id, '--status', 'bounced', '--force'])
  t.strictSame(forced.ids, [refused.id], 'what the provider has taken is left alone')
  t.match(await cli.json(['email', 'show', id, refused.id]), {
    status: 'queued',
    waiting: { state: 'not_taken_yet' },
  })
})
