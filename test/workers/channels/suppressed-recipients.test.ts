/**
 * Transactional email to suppressed addresses: skipped recipients, how they are shown, and how to send
 * anyway.
 */
import { sql } from 'slonik'
import { number, object, string } from 'yup'
import { adminCli } from '../../support/admin.ts'
import { report } from '../../support/contacts.ts'
import { EMPTY } from '../../support/empty.ts'
import { erasePerson } from '../../support/erase.ts'
import { openPool } from '../../support/pool.ts'
import { startReceiver } from '../../support/receiver.ts'
import { storeEmails } from '../../support/reports.ts'
import { anEmail, makeTeam, type Service, startService, type TestTeam } from '../../support/service.ts'
import { startSmtpSink } from '../../support/smtp-sink.ts'
import t from '../../support/tap.ts'
import { startWorker, until } from '../../support/worker.ts'

const service = await startService(t)
const cli = adminCli({ DATABASE_URL: service.url, WEBHOOK_ALLOW: '127.0.0.0/8' })
const sink = await startSmtpSink(t)
const rows = { database: await openPool(t, service.url) }
await startWorker(t, service, { smtp_url: sink.url })

const send = async (team: TestTeam, to: string[], more: object = {}): Promise<string> => {
  const sent = await service.call('POST', '/v1/emails', { key: team.key, body: anEmail({ to, ...more }) })
  t.equal(sent.status, 201)
  t.equal(sent.body.status, 'queued')
  return sent.body.id
}

const show = (team: TestTeam, id: string) => cli.json(['email', 'show', team.id, id])

/** Waits until a worker is done with an email. */
async function done(team: TestTeam, id: string) {
  await until('it is done', async () => (await show(team, id)).status !== 'queued')
  return show(team, id)
}

const add = (team: TestTeam, email: string, cause: string) =>
  cli.json(['suppression', 'add', team.id, email, '--cause', cause, '--reason', '550 5.1.1 gone'])

const rcpts = (): string[] => sink.recipients().flat()

async function statsOf({ database }: Service, team: TestTeam): Promise<readonly string[]> {
  return database.anyFirst(sql.type(object({ status: string().defined() }))`
    select status from (
      select status, sum(count) as count from (
        select status, count from figure_deltas where team_id = ${team.id} and channel = 'email'
        union all
        select status, count from daily_figures where team_id = ${team.id} and channel = 'email') f
      group by status) s where count > 0 order by status`)
}

t.test('email to a hard-bounced address ends as bounced', async (t) => {
  const team = await makeTeam(service)
  const receiver = await startReceiver(t)
  await cli.json(['webhook', 'add', team.id, '--url', receiver.url, '--types', '*'])
  await report(service, team, 'Gone@example.org', 'bounced')
  const used = async () =>
    service.database.oneFirst(sql.type(object({ used: number().defined() }))`
      select emails_used as used from allowances where team_id = ${team.id}`)
  const before = await used()
  const id = await send(team, ['gone@EXAMPLE.org'])
  t.equal(await used(), before + 1, 'it is charged')
  const email = await done(team, id)
  t.equal(email.status, 'bounced')
  t.equal(email.provider_message_id, null)
  const today = new Date().toISOString().slice(0, 10)
  t.match(email.events, [
    {
      kind: 'suppressed',
      recipient: 'gone@EXAMPLE.org',
      detail: `bounced on ${today}: the words of a server`,
    },
  ])
  t.equal(email.events.length, 1)
  t.notOk(rcpts().some((to) => /gone/i.test(to)))
  await until('it is announced', () => receiver.received.length >= 2)
  const types = receiver.received.map(({ body }) => body.type).sort()
  t.strictSame(types, ['contact.suppressed', 'email.suppressed'], 'there is no email.bounced')
  t.match(receiver.received.find(({ body }) => body.type === 'email.suppressed')?.body.data, {
    ...{ email_id: id, recipient: 'gone@EXAMPLE.org', detail: email.events[0].detail },
  })
  t.strictSame(await statsOf(service, team), ['suppressed'], 'it is no bounce in stats')
})

t.test('other recipients get the email, whose status is theirs', async (t) => {
  const team = await makeTeam(service, { domain: 'others.test' })
  await add(team, 'gone@example.org', 'bounce')
  const id = await send(team, ['gone@example.org', 'Ana <ana@others.example>'], {
    cc: ['ben@others.example'],
    from: 'a@others.test',
  })
  const email = await done(team, id)
  t.equal(email.status, 'sent')
  t.strictSame(
    email.events
      .map(({ kind, recipient }: { kind: string; recipient: string }) => `${kind} ${recipient}`)
      .sort(),
    ['sent ana@others.example', 'sent ben@others.example', 'suppressed gone@example.org'],
  )
  const others = rcpts()
    .filter((to) => to.endsWith('@others.example'))
    .sort()
  t.strictSame(others, ['ana@others.example', 'ben@others.example'])
})

t.test('the team chooses which suppressions stop its email', async (t) => {
  const team = await makeTeam(service, { domain: 'chosen.test' })
  const from = 'a@chosen.test'
  t.equal((await cli.json(['team', 'show', team.id])).suppress_transactional, 'bounces')
  for (const cause of ['bounce', 'complaint', 'manual']) await add(team, `${cause}@chosen.example`, cause)
  await service.database.query(sql.unsafe`
    insert into suppressed_addresses (team_id, identity, email, cause, since)
    values (${team.id}, 'soft@chosen.example', 'soft@chosen.example', 'soft_bounces', now())`)
  const expected: Record<string, string[]> = {
    bounces: ['bounce'],
    bounces_and_complaints: ['bounce', 'complaint', 'manual'],
    nothing: [],
  }
  for (const [which, stopped] of Object.entries(expected)) {
    const set = await cli.json(['team', 'set', team.id, '--suppress-transactional', which])
    t.equal(set.suppress_transactional, which)
    for (const cause of ['bounce', 'complaint', 'manual', 'soft']) {
      const email = await done(team, await send(team, [`${cause}@chosen.example`], { from }))
      t.equal(email.status, stopped.includes(cause) ? 'bounced' : 'sent', `${cause} with ${which}`)
      if (cause === 'manual' && stopped.includes(cause))
        t.match(email.events, [{ kind: 'suppressed', detail: /^added manually on \d{4}-\d\d-\d\d: / }])
    }
  }
})

t.test('a complaint after a bounce still stops email', async (t) => {
  const team = await makeTeam(service, { domain: 'both.test' })
  await add(team, 'both@both.example', 'bounce')
  await report(service, team, 'both@both.example', 'complained')
  t.match(await cli.json(['suppression', 'show', team.id, 'both@both.example']), { cause: 'complaint' })
  const email = await done(team, await send(team, ['both@both.example'], { from: 'a@both.test' }))
  t.match(email.events, [{ kind: 'suppressed', detail: /^bounced on .*550 5\.1\.1 gone$/ }])
})

t.test('an international address is recognised in either spelling', async (t) => {
  const team = await makeTeam(service, { domain: 'intl.test' })
  await add(team, 'ana@bücher.example', 'bounce')
  for (const to of ['ana@bücher.example', 'ANA@xn--bcher-kva.example'])
    t.equal((await done(team, await send(team, [to], { from: 'a@intl.test' }))).status, 'bounced', to)
})

t.test('an erased address stays suppressed until it is lifted', async (t) => {
  const team = await makeTeam(service, { domain: 'erased.test' })
  const from = 'a@erased.test'
  await add(team, 'gone@erased.example', 'bounce')
  await erasePerson(service.deps, team.id, 'gone@erased.example')
  t.strictSame(await cli.json(['suppression', 'list', team.id]), [])
  const email = await done(team, await send(team, ['gone@erased.example'], { from }))
  t.match(email.events, [{ kind: 'suppressed', detail: /^$/ }])
  t.equal(email.status, 'bounced')
  const lift = ['suppression', 'lift', team.id, 'gone@erased.example', '--reason', 'asked for it']
  t.same(await cli.json([...lift, '--dry-run']), { lifted: 0, would_lift: 1 })
  t.same(await cli.json(lift), { lifted: 1 })
  t.same(await cli.json(lift), { lifted: 0 })
  t.equal((await done(team, await send(team, ['gone@erased.example'], { from }))).status, 'sent')
})

t.test('requeue --force sends in spite of the suppression list', async (t) => {
  const team = await makeTeam(service, { domain: 'forced.test' })
  await add(team, 'gone@forced.example', 'bounce')
  const id = await send(team, ['gone@forced.example'], { from: 'a@forced.test' })
  t.equal((await done(team, id)).status, 'bounced')
  t.match(await cli.fault(['email', 'requeue', team.id, id]), /./)
  await cli.json(['email', 'requeue', team.id, id, '--force'])
  await until('it is sent', async () => (await show(team, id)).status === 'sent')
  t.strictSame(await statsOf(service, team), ['sent'])
})

t.test('a test team can reuse the simulator’s names', async (t) => {
  const team = await makeTeam(service, { test: true })
  for (const round of [1, 2]) {
    const email = await show(team, await send(team, ['bounced@example.org']))
    await until('it bounced', async () => (await show(team, email.id)).status === 'bounced')
    t.match((await show(team, email.id)).events, [{ kind: 'sent' }, { kind: 'bounced' }], `round ${round}`)
  }
  t.match(await cli.json(['suppression', 'list', team.id]), [
    { email: 'bounced@example.org', cause: 'bounce' },
  ])
  const email = await done(team, await send(team, ['suppressed+1@example.org']))
  t.match(email.events, [{ kind: 'suppressed', detail: /^bounced on \d{4}-\d\d-\d\d: simulated$/ }])
  t.equal(email.status, 'bounced')
  t.equal((await cli.json(['suppression', 'list', team.id])).length, 1, 'it gets no entry')
  await add(team, 'anyone@example.org', 'bounce')
  t.equal((await done(team, await send(team, ['anyone@example.org']))).status, 'bounced')
})

t.test('requeue by filter skips and counts suppressed recipients', async (t) => {
  const team = await makeTeam(service, { domain: 'filtered.test' })
  await add(team, 'gone@filtered.example', 'bounce')
  await done(team, await send(team, ['gone@filtered.example'], { from: 'a@filtered.test' }))
  const [none = '', some = ''] = await storeEmails(rows, team.id, [
    ['gone@filtered.example'],
    ['gone@filtered.example', 'ana@filtered.example'],
  ])
  await rows.database.query(sql.type(object())`
    update email_states set suppression = 'ignored' where id = ${none}`)
  const requeue = ['email', 'requeue', team.id, '--status']
  t.match(await cli.json([...requeue, 'queued', '--dry-run']), { requeued: 1, suppressed: 2, ids: [some] })
  t.match(await cli.json([...requeue, 'bounced', '--force']), { requeued: 0, suppressed: 1, ids: EMPTY })
  t.match(await cli.json([...requeue, 'queued']), { requeued: 1, suppressed: 2 })
  t.equal((await show(team, none)).status, 'queued')
})

t.test('requeue by filter also skips erased and international addresses', async (t) => {
  const team = await makeTeam(service, { domain: 'unlisted.test' })
  await add(team, 'gone@unlisted.example', 'bounce')
  await erasePerson(service.deps, team.id, 'gone@unlisted.example')
  await add(team, 'ana@bücher.example', 'bounce')
  const [, , some = ''] = await storeEmails(rows, team.id, [
    ['Gone@unlisted.example'],
    ['ANA@bücher.example'],
    ['gone@unlisted.example', 'Ben <ben@unlisted.example>', 'ana@xn--bcher-kva.example'],
  ])
  const requeue = ['email', 'requeue', team.id, '--status', 'queued']
  t.match(await cli.json([...requeue, '--dry-run']), { requeued: 1, suppressed: 4, ids: [some] })
  t.match(await cli.json(requeue), { requeued: 1, suppressed: 4, ids: [some] })
  await cli.json(['team', 'set', team.id, '--suppress-transactional', 'nothing'])
  t.match(await cli.json([...requeue, '--dry-run']), { suppressed: 0 })
})
