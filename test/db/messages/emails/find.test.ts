/** Finding emails by recipient, ID, subject, dates and every filter of a list, in pages. */
import { sql } from 'slonik'
import { createVersions } from '../../../../db/content/templates/versions.ts'
import { changeEmails, lockEmails } from '../../../../db/messages/emails/apply-events.sql.ts'
import { type EmailFilter, searchEmails } from '../../../../db/messages/emails/search.ts'
import { createSecrets } from '../../../../db/process/secrets.ts'
import { adminCli } from '../../../support/admin.ts'
import { SECRET_KEY } from '../../../support/environment.ts'
import { openStore, type Store } from '../../../support/stored-emails.ts'
import t from '../../../support/tap.ts'

let store: Store

t.before(async () => {
  store = await openStore(t)
})

const day = (text: string): Date => new Date(`${text}T12:00:00Z`)

async function find(filter: EmailFilter, page: { before?: string; limit: number } = { limit: 100 }) {
  const deps = { tx: store.database, versions: createVersions(), secrets: createSecrets(SECRET_KEY) }
  const asked = { ...filter, since: new Date(0), now: new Date() }
  const { rows: emails } = await searchEmails(deps, asked, page, { patience: 60_000 })
  return emails.map((email) => email.id)
}

/** A team with emails of three days, oldest first. */
async function start() {
  const team = await store.team('pro', day('2026-01-01'))
  const email = async (date: string, changes: Parameters<Store['email']>[2]) =>
    (await store.email(team, day(date), changes)).id
  const first = await email('2026-01-10', { to: ['ann@example.com', 'Bob@Example.com'], subject: 'One' })
  const second = await email('2026-01-11', {
    to: ['ann@example.com'],
    subject: 'Your invoice 100%',
    tags: ['bill'],
    idempotency_key: `invoice-${team}`,
  })
  const third = await email('2026-01-12', { to: ['zoë@bücher.test'.replace('ë', 'e')], subject: 'Invoice' })
  return { team, first, second, third }
}

t.test('finds a recipient in any spelling, in one or all teams', async (t) => {
  const { team, first, second, third } = await start()
  const other = await store.team()
  const theirs = (await store.email(other, new Date(), { to: ['ann@example.com'] })).id
  t.strictSame(await find({ team_id: team, recipient: 'Ann <ANN@EXAMPLE.COM>' }), [second, first])
  t.strictSame(await find({ recipient: 'ann@example.com' }), [theirs, second, first])
  t.strictSame(await find({ team_id: team, recipient: 'bob@example.com' }), [first])
  t.strictSame(await find({ team_id: team, recipient: 'zoe@bücher.test' }), [third])
  t.strictSame(await find({ team_id: team, recipient: 'zoe@xn--bcher-kva.test' }), [third])
  t.strictSame(await find({ team_id: team, recipient: 'nn@example.com' }), [], 'a part of one is not enough')
  await t.rejects(find({ recipient: 'ann' }), { code: 'bad_request', message: /"ann"/ })
})

t.test('finds a recipient with a name by the bare address', async (t) => {
  const team = await store.team()
  const { id } = await store.email(team)
  const to = ['"Doe, <Jane>" <Jane@example.com>', 'plain@example.com']
  await store.database.query(sql.unsafe`
    update accepted_emails set to_emails = ${sql.array(to, 'text')} where team_id = ${team} and id = ${id}`)
  t.strictSame(await find({ team_id: team, recipient: 'jane@example.com' }), [id])
  t.strictSame(await find({ team_id: team, recipient: 'plain@example.com' }), [id])
})

t.test('finds an email by its IDs, keys and Message-ID', async (t) => {
  const { team, first, second } = await start()
  await store.database.query(sql.unsafe`
    update accepted_emails set http_request_id = ${`call-${team}`} where team_id = ${team} and id = ${first}`)
  const ref = { team_id: team, email_id: first }
  const change = { status: 'sent', size_kb: 1, pending: 'unchanged' } as const
  await changeEmails(
    store.database,
    [{ ...ref, ...change, provider_message_id: `p-${team}` }],
    await lockEmails(store.database, [ref]),
  )
  for (const team_id of [team, undefined]) {
    t.strictSame(await find({ team_id, id: first.toUpperCase() }), [first])
    for (const id of [`p-${team}`, `<p-${team}@relay.test>`, `call-${team}`, `<${first}@demo.test>`])
      t.strictSame(await find({ team_id, id }), [first], id)
    t.strictSame(await find({ team_id, id: `invoice-${team}` }), [second])
  }
  const other = await store.team()
  t.strictSame(await find({ team_id: other, id: first }), [], 'another team finds nothing of it')
})

t.test('filters by subject, dates, status, domain, template and tag', async (t) => {
  const { team, first, second, third } = await start()
  const found = (filter: EmailFilter) => find({ team_id: team, ...filter })
  t.strictSame(await found({ subject: '  invoice ' }), [third, second])
  t.strictSame(await found({ subject: '100% INVOICE' }), [second], 'all words, in any order, taken literally')
  t.strictSame(await found({ subject: '10_' }), [])
  t.strictSame(await found({ from: day('2026-01-11') }), [third, second])
  t.strictSame(await found({ from: day('2026-01-11'), to: day('2026-01-12') }), [second])
  t.strictSame(await found({ status: 'queued', tag: 'bill' }), [second])
  t.strictSame(await found({ status: 'sent' }), [])
  t.strictSame(await found({ tag: 'bil' }), [])
  t.strictSame(await found({ domain: 'DEMO.test' }), [third, second, first])
  t.strictSame(await found({ domain: 'mo.test' }), [])
  t.strictSame(await found({ template_id: team }), [])
  await t.rejects(found({ domain: 'no domain' }), { code: 'bad_request' })
  await t.rejects(find({ team_id: first }), { code: 'not_found' })
})

t.test('continues a page after the last ID', async (t) => {
  const { team, first, second, third } = await start()
  t.strictSame(await find({ team_id: team }, { limit: 2 }), [third, second])
  t.strictSame(await find({ team_id: team }, { limit: 2, before: second }), [first])
  const all = await find({ to: day('2026-02-01') })
  t.strictSame(all, [...all].sort().reverse(), 'newest first, whichever team')
  t.strictSame(await find({ to: day('2026-02-01') }, { limit: 3 }), all.slice(0, 3))
})

t.test('email find prints matches, and rejects invalid filters', async (t) => {
  const { team, second } = await start()
  const cli = adminCli({ DATABASE_URL: store.url })
  const flags = ['--recipient', 'ann@example.com', '--subject', 'invoice']
  const day = ['--since', '2026-01-11', '--until', '2026-01-12']
  const found = await cli.json(['email', 'find', '--team', team, ...flags, ...day])
  t.match(found, [{ id: second, team_id: team, subject: 'Your invoice 100%', status: 'queued' }])
  t.notOk('html' in found[0])
  const former = ['--from', '2026-01-11', '--to', '2026-01-12']
  t.strictSame(await cli.json(['email', 'find', '--team', team, ...flags, ...former]), found, 'as in 0.1.0')
  t.strictSame(await cli.json(['email', 'find', '--team', team, ...flags, '--until', '2026-01-11']), [])
  t.match(await cli.json(['email', 'find', '--id', `invoice-${team}`]), [{ id: second }])
  t.match(await cli.fault(['email', 'find', '--recipient', 'ann']), /^recipient must be an email address/)
})

t.test('escapes control characters of customers in the terminal', async (t) => {
  const team = await store.team()
  const subject = 'x\u009b31m \u009d0;owned\u009c\u007f\u202etxt\u2066\u200f'
  await store.email(team, new Date(), { subject })
  const cli = adminCli({ DATABASE_URL: store.url })
  const driving = /(?!\n)[\p{Cc}\u200f\u202a-\u202e\u2066-\u2069]/u
  const { stdout } = await cli.run(['email', 'find', '--team', team])
  t.notMatch(stdout, driving)
  t.match(JSON.parse(stdout), [{ subject }], 'the JSON says the same')
  t.notMatch(await cli.fault(['email', 'find', '--recipient', `a${subject}`]), driving)
})
