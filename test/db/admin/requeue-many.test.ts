/** `requeue` with a filter that matches more than one batch: the stored job and its completion. */
import { sql } from 'slonik'
import { object, string } from 'yup'
import { WEBHOOK } from '../../../db/channels/webhook.sql.ts'
import { runBackgroundJob } from '../../../db/maintenance/background-jobs/background-jobs.ts'
import { acceptEmails } from '../../../db/messages/emails/accept.ts'
import { plural } from '../../../db/plural.ts'
import { idRow } from '../../../db/postgres/rows.ts'
import { world } from '../../support/service.ts'
import { anItem } from '../../support/stored-emails.ts'
import t from '../../support/tap.ts'

const { cli, database, deps, team } = await world(t, { team: { plan: 'pro', domain: 'demo.test' } })

/** More than two batches. */
const MANY = 1_100

/** Records everything that is stored when background jobs start. */
await database.query(sql.unsafe`create table kept (given text not null)`)
await database.query(sql.unsafe`
  create rule kept as on insert to background_jobs do also insert into kept values (new.given::text)`)
const kept = async () =>
  database.anyFirst(sql.type(object({ given: string().defined() }))`
    with gone as (delete from kept returning given) select given from gone`)

async function accepted(count: number, subject: string): Promise<void> {
  const items = Array.from({ length: count }, () => anItem({ subject }))
  await database.transaction((tx) => acceptEmails({ ...deps, tx }, { team_id: team.id, domain: null }, items))
}

const emailIds = (subject: string) =>
  database.anyFirst(sql.type(idRow)`select id from emails where subject = ${subject} order by id`)
const requeuedAt = (at: string) =>
  database.anyFirst(sql.type(idRow)`select id from emails where requeued_at = ${at} order by id`)

t.test('email requeue stores its filter instead of the IDs', async (t) => {
  await accepted(MANY, 'Wanted')
  await accepted(10, 'Other')
  const wanted = await emailIds('Wanted')
  const answer = await cli.json(['email', 'requeue', team.id, '--subject', 'wanted'])
  t.equal(answer.requeued, MANY)
  t.strictSame(answer.ids, wanted)
  t.strictSame(await requeuedAt(answer.requeued_at), wanted)
  const [given = '', ...others] = await kept()
  t.strictSame(others, [])
  t.ok(given.length < 1_000, `${given.length} characters`)
  t.match(JSON.parse(given), {
    filter: { subject: 'wanted' },
    between: { oldest: wanted[0], newest: wanted.at(-1) },
  })
  const [entry] = await cli.json(['audit', 'list', '--team', team.id, '--limit', '1'])
  t.match(entry, { action: 'email.requeue', subject: plural(MANY, 'email'), detail: 'subject: wanted' })
})

t.test('email requeue with --force also stores its filter', async (t) => {
  const answer = await cli.json(['email', 'requeue', team.id, '--subject', 'other', '--force'])
  t.equal(answer.requeued, 10)
  t.strictSame(await requeuedAt(answer.requeued_at), await emailIds('Other'))
  const forced = (await kept()).map((given) => JSON.parse(given).force)
  t.strictSame(forced, [true])
})

t.test('webhook requeue stores its filter instead of the IDs', async (t) => {
  const webhook = await cli.json(['webhook', 'add', team.id, '--url', 'https://hooks.example.com/a'])
  await database.query(sql.unsafe`
    insert into webhook_messages (team_id, id, endpoint_id, event_id, type, body, status, created_at)
    select ${team.id}, ('0190a1b2-0003-7000-8000-' || lpad(n::text, 12, '0'))::uuid, ${webhook.id}, gen_random_uuid(),
      case when n <= ${MANY} then 'email.sent' else 'email.opened' end, '{}', 'queued', now()
    from generate_series(1, ${MANY + 5}::int) n`)
  const answer = await cli.json(['webhook', 'requeue', team.id, '--type', 'email.sent'])
  t.equal(answer.requeued, MANY)
  const [given = ''] = await kept()
  t.match(JSON.parse(given), { type: 'email.sent', force: false })
  t.ok(given.length < 1_000, `${given.length} characters`)
  const [entry] = await cli.json(['audit', 'list', '--team', team.id, '--limit', '1'])
  t.match(entry, {
    action: 'webhook.requeue',
    subject: plural(MANY, WEBHOOK.noun),
    detail: 'type: email.sent',
  })
})

t.test('finishes a requeue that version 0.1.0 stored with IDs', async (t) => {
  await accepted(MANY, 'Older')
  const ids = await emailIds('Older')
  const at = new Date().toISOString()
  const result = await runBackgroundJob(
    { ...deps, database, secrets: null },
    {
      kind: 'email.requeue',
      team_id: team.id,
      actor: 'cli',
      given: { ids: [...ids], force: false, until: ids.at(-1) ?? '', at, words: 'subject: older' },
    },
  )
  t.strictSame(result, { changed: MANY })
  t.strictSame(await requeuedAt(at), ids)
})
