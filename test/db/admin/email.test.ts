/** The verbs of stored emails. */
import { sql } from 'slonik'
import { saveTemplate } from '../../../db/content/templates/save.ts'
import { changeEmails, lockEmails } from '../../../db/messages/emails/apply-events.sql.ts'
import { storeEmailEvents } from '../../../db/messages/emails/events.sql.ts'
import { readUnsubscribeToken } from '../../../db/messages/emails/unsubscribe-token.ts'
import { createSecrets } from '../../../db/process/secrets.ts'
import { adminCli } from '../../support/admin.ts'
import { runClock } from '../../support/clock.ts'
import { EMPTY } from '../../support/empty.ts'
import { SECRET_KEY } from '../../support/environment.ts'
import { loseVersions } from '../../support/rows.ts'
import { byCli } from '../../support/service.ts'
import { openStore } from '../../support/stored-emails.ts'
import t, { type Test } from '../../support/tap.ts'

const FIELDS = [
  ...'id team_id domain_id template_id from_address to_emails subject html size_kb tags status'.split(' '),
  ...'idempotency_key created_at requeued_at provider_message_id broadcast_id contact_id'.split(' '),
  ...'unsubscribe_token body_text headers reply_to'.split(' '),
]

async function start(t: Test) {
  const store = await openStore(t)
  const id = await store.team()
  /** Records that the provider accepted an email. */
  const take = async (emailId: string) => {
    const ref = { team_id: id, email_id: emailId }
    const change = { status: 'sent', provider_message_id: 'p-1', size_kb: 1, pending: 'unchanged' } as const
    await changeEmails(store.database, [{ ...ref, ...change }], await lockEmails(store.database, [ref]))
  }
  const event = async (emailId: string, kind: 'sent' | 'deferred', detail: string, at: string) =>
    await storeEmailEvents(store.database, [
      {
        team_id: id,
        email_id: emailId,
        event_key: `${kind}:${at}`,
        kind,
        recipient: 'someone@example.com',
        occurred_at: new Date(at),
        detail,
      },
    ])
  return { ...store, cli: adminCli({ DATABASE_URL: store.url }), id, take, event }
}

t.test('email show prints ordered fields, events and waiting state', async (t) => {
  const { cli, id, email, event, database } = await start(t)
  const headers = { 'X-B': '1', 'X-A': '2' }
  const row = await email(id, new Date(), { headers, tags: ['a', 'b'], idempotency_key: 'k', text: 'Hi' })
  await runClock(database)
  const fresh = await cli.json(['email', 'show', id, row.id])
  t.strictSame(Object.keys(fresh), [...FIELDS, 'unsubscribe_url', 'http_request_id', 'events', 'waiting'])
  t.match(fresh, {
    id: row.id,
    team_id: id,
    template_id: null,
    from_address: 'hello@demo.test',
    to_emails: ['someone@example.com'],
    html: '<p>Hello</p>',
    size_kb: 0.01,
    tags: ['a', 'b'],
    status: 'queued',
    idempotency_key: 'k',
    requeued_at: null,
    contact_id: null,
    unsubscribe_token: null,
    unsubscribe_url: null,
    body_text: 'Hi',
    reply_to: /^$/,
    events: EMPTY,
  })
  t.strictSame(Object.keys(fresh.headers), ['X-B', 'X-A'])
  t.match(fresh.waiting, { state: 'not_taken_yet', next_attempt_at: /Z$/, attempts: 0, last_response: null })

  await event(row.id, 'deferred', '451 later', '2026-01-02T00:00:00Z')
  await event(row.id, 'deferred', '451 sooner', '2026-01-01T00:00:00Z')
  const { events, waiting } = await cli.json(['email', 'show', id, row.id])
  t.match(events, [{ detail: '451 sooner' }, { detail: '451 later' }])
  t.strictSame(events[0], {
    time: '2026-01-01T00:00:00.000Z',
    kind: 'deferred',
    recipient: 'someone@example.com',
    detail: '451 sooner',
  })
  t.equal(waiting.last_response, '451 later')
})

t.test("email show prints the contact's unsubscribe token", async (t) => {
  const { cli, id, email, database } = await start(t)
  const contact = await database.oneFirst(sql.unsafe`
    insert into contacts (team_id, id, email, identity, status, properties, topic_ids, created_at, updated_at)
    values (${id}, gen_random_uuid(), 'A@x.test', 'a@x.test', 'unsubscribed', '{}', '{}', now(), now()) returning id`)
  const row = await email(id, new Date(), { to: ['a@X.test'] })
  const { contact_id, unsubscribe_token, unsubscribe_url } = await cli.json(['email', 'show', id, row.id])
  t.equal(contact_id, contact)
  t.equal(unsubscribe_url, null, 'PUBLIC_URL is not set')
  const named = readUnsubscribeToken(createSecrets(SECRET_KEY), unsubscribe_token)
  t.same(named, { team_id: id, id: row.id, person: 'a@x.test' })
  const show = ['email', 'show', id, row.id]
  for (const PUBLIC_URL of ['https://mail.demo.test', 'https://mail.demo.test/']) {
    const linked = await cli.json(show, { env: { PUBLIC_URL } })
    t.equal(linked.unsubscribe_url, `https://mail.demo.test/u/${unsubscribe_token}`)
  }
  for (const PUBLIC_URL of ['mail.demo.test', 'https://', 'ftp://mail.demo.test'])
    t.match(await cli.fault(show, { env: { PUBLIC_URL } }), /PUBLIC_URL must be an http\(s\) URL/)
})

t.test('email show prints no waiting state for an accepted email', async (t) => {
  const { cli, id, email, take, event } = await start(t)
  const row = await email(id)
  await take(row.id)
  await event(row.id, 'sent', '250 ok', '2026-01-01T00:00:00Z')
  const shown = await cli.json(['email', 'show', id, row.id])
  t.match(shown, { status: 'sent', provider_message_id: 'p-1', events: [{ kind: 'sent' }] })
  t.notOk('waiting' in shown)
})

t.test('email list prints newest emails first, without bodies', async (t) => {
  const { cli, id, email, team, take } = await start(t)
  const first = await email(id)
  const second = await email(id, new Date(), { subject: 'Second' })
  await email(await team())
  const listed = await cli.json(['email', 'list', id])
  t.match(listed, [{ id: second.id, subject: 'Second' }, { id: first.id }])
  t.equal(listed.length, 2)
  const fields = FIELDS.filter((field) => field !== 'html' && field !== 'body_text')
  t.strictSame(Object.keys(listed[0]), fields)
  await take(first.id)
  t.match(await cli.json(['email', 'list', id, '--status', 'sent']), [{ id: first.id }])
  t.match(await cli.json(['email', 'list', id, '--limit', '1']), [{ id: second.id }])
  t.same(await cli.json(['email', 'list', id, '--status', 'bounced']), [])
  t.match(await cli.fault(['email', 'list', id, '--status', 'lost']), /must be one of queued, sent/)
  t.match(await cli.fault(['email', 'list', id, '--limit', '0']), /must be an integer, 1 or more/)
})

t.test('email list prints the fields of email show without rendering', async (t) => {
  const { cli, id, email, take, database } = await start(t)
  const parts = { name: 'A', html: '<p>{{name}}</p>', text: '' }
  const { id: template_id } = await saveTemplate(byCli(database), id, parts)
  const changes = { template_id, html: null, variables: { name: 'x'.repeat(2_048) } }
  // The second one is clearly later, because a Date has no microseconds and the database's clock does.
  const rows = [await email(id), await email(id, new Date(Date.now() + 1_000), changes)]
  const shown = []
  for (const row of rows.toReversed()) {
    const { html: _html, body_text: _text, ...rest } = await cli.json(['email', 'show', id, row.id])
    const { unsubscribe_url: _url, http_request_id: _id, events: _e, waiting: _waiting, ...fields } = rest
    shown.push(fields)
  }
  t.strictSame(await cli.json(['email', 'list', id]), shown)
  for (const row of rows) await take(row.id)
  await loseVersions({ database }, id)
  const sizes = (await cli.json(['email', 'list', id])).map((row: { size_kb: number }) => row.size_kb)
  t.strictSame(sizes, [1, 0.01])
})

t.test('email list continues past one page', async (t) => {
  const { cli, id, email } = await start(t)
  await cli.json(['team', 'plan', id, '--plan', 'pro', '--rate', '1000'])
  const ids: string[] = []
  for (let index = 0; index < 203; index++) ids.unshift((await email(id, new Date(Date.now() + 1_000))).id)
  const listed = (await cli.json(['email', 'list', id])).map((row: { id: string }) => row.id)
  t.same(listed, ids)
  t.equal((await cli.json(['email', 'list', id, '--limit', '150'])).length, 150)
})

t.test("email show, requeue and delete fail for another team's email", async (t) => {
  const { cli, id, email, team } = await start(t)
  const row = await email(await team())
  for (const verb of ['show', 'requeue', 'delete']) {
    t.equal(await cli.fault(['email', verb, id, row.id]), `No email ${row.id} in this team.`)
    t.match(await cli.fault(['email', verb, id, 'x']), /must be a UUID/)
  }
})

t.test('email requeue creates a missing job and sets requeued_at', async (t) => {
  const { cli, id, email, database } = await start(t)
  const row = await email(id)
  await database.query(sql.unsafe`delete from pgboss.job where id = ${row.id}`)
  t.match(await cli.json(['email', 'show', id, row.id]), { status: 'queued', waiting: { state: 'lost' } })
  const requeued = await cli.json(['email', 'requeue', id, row.id])
  t.match(requeued, { id: row.id, status: 'queued', requeued_at: /Z$/ })
  const shown = await cli.json(['email', 'show', id, row.id])
  t.match(shown, {
    requeued_at: requeued.requeued_at,
    events: [{ kind: 'requeued' }],
    waiting: { attempts: 0 },
  })
  await cli.json(['email', 'requeue', id, row.id])
  t.match(await cli.json(['queue', 'status']), [{ queue: 'deliver-email', ready: 1 }], 'never two jobs')
})

t.test('email requeue skips an email that the provider accepted', async (t) => {
  const { cli, id, email, take } = await start(t)
  const row = await email(id)
  await take(row.id)
  t.match(await cli.fault(['email', 'requeue', id, row.id]), /already accepted it \(provider ID p-1\)/)
  t.match(await cli.json(['email', 'show', id, row.id]), { requeued_at: null, events: EMPTY })
})

t.test('email delete deletes events, and refunds the quota', async (t) => {
  const { cli, id, email, event } = await start(t)
  const [row, other] = [await email(id), await email(id)]
  await event(row.id, 'deferred', '451', '2026-01-01T00:00:00Z')
  t.match(await cli.json(['team', 'show', id]), { used: { emails: 2 }, left: { emails: 4998 } })
  t.match(await cli.json(['email', 'delete', id, row.id]), { id: row.id, deleted: true })
  t.match(await cli.json(['team', 'show', id]), { used: { emails: 1 }, left: { emails: 4999 } })
  t.match(await cli.fault(['email', 'delete', id, row.id]), /No email/)
  t.match(await cli.json(['email', 'list', id]), [{ id: other.id }])
})

t.test("email delete of an earlier period's email refunds nothing", async (t) => {
  const { cli, id, email } = await start(t)
  const old = await email(id)
  const after = new Date(Date.parse(old.created_at) + 1)
  const period = ['--period-start', after.toISOString(), '--period-end', '2999-01-01']
  await email(id, after)
  t.match(await cli.json(['team', 'plan', id, '--plan', 'pro', ...period]), { used: { emails: 1 } })
  await cli.json(['email', 'delete', id, old.id])
  t.match(await cli.json(['team', 'show', id]), { used: { emails: 1 } })
})

t.test('email requeue needs a filter of email find', async (t) => {
  const { cli, id, email, take } = await start(t)
  const { id: wanted } = await email(id, new Date(), { subject: 'Your invoice', tags: ['bill'] })
  await email(id, new Date(), { subject: 'Another', tags: ['bill'] })
  const { id: taken } = await email(id, new Date(), { subject: 'invoice', to: ['b@example.com'] })
  await take(taken)
  const requeue = async (...flags: string[]) => (await cli.json(['email', 'requeue', id, ...flags])).ids
  for (const flags of [
    ['--subject', 'invoice'],
    ['--tag', 'bill', '--recipient', 'someone@example.com', '--subject', 'your'],
    ['--id', `<${wanted}@demo.test>`],
  ])
    t.strictSame(await requeue(...flags, '--dry-run'), [wanted], flags.join(' '))
  t.match(
    await cli.fault(['email', 'requeue', id, '--subject', ' ']),
    /'--subject <words>' argument ' ' is invalid\. It must not be empty/,
    'no words are in every subject',
  )
  t.strictSame(await requeue('--tag', 'none'), [])
  t.strictSame(await requeue('--until', '2026-01-01'), [])
  t.strictSame(await requeue('--to', '2026-01-01'), [], 'as in 0.1.0')
  t.strictSame(await requeue('--since', '2026-01-01', '--from', '2999-01-01'), [], 'the later of both')
  t.equal((await requeue('--domain', 'demo.test')).length, 2)
  const [entry] = await cli.json(['audit', 'list', '--team', id, '--limit', '1'])
  t.match(entry, { action: 'email.requeue', subject: '2 emails', detail: 'domain: demo.test' })
  t.match(await cli.fault(['email', 'requeue', id]), /Specify an ID, or a filter/)
})
