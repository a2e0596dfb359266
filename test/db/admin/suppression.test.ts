/** The verbs of suppressions: lists and lifts by filter or address, and the exit codes for scripts. */
import { sql } from 'slonik'
import { broadcastingOf } from '../../support/broadcasting.ts'
import { shows, signedIn } from '../../support/dashboard.ts'
import { erasePerson } from '../../support/erase.ts'
import { formTo } from '../../support/forms.ts'
import { makeTeam, sendEmail, worldOf } from '../../support/service.ts'
import { shareService } from '../../support/shared-service.ts'
import { startSmtpSink } from '../../support/smtp-sink.ts'
import t, { type Test } from '../../support/tap.ts'
import { startWorker, until } from '../../support/worker.ts'

const renewed = await shareService(t, { publicUrl: 'https://mail.example.com' })

type Listed = { email: string; cause: string; since: string; email_id: null; response: string }

/** A team with suppressions in three domains, an hour apart. */
async function begin(t: Test) {
  const { service, cli, team } = await worldOf(await renewed())
  const add = async (email: string, cause: string, reason: string, hours: number) => {
    const printed = await cli.json([
      'suppression',
      'add',
      team.id,
      email,
      '--cause',
      cause,
      '--reason',
      reason,
    ])
    t.match(printed, { email, cause, response: reason })
    await service.database.query(sql.unsafe`
      update suppressed_addresses set since = ${`2026-03-01T0${hours}:00:00.000456Z`} where email = ${email}`)
  }
  await add('a@one.example', 'bounce', '550 5.7.1 Listed by Blocklist.example', 1)
  await add('b@one.example', 'complaint', '', 2)
  await add('c@b\u00fccher.example', 'bounce', '550 5.1.1 gone', 3)
  await add('d@sub.one.example', 'manual', 'asked by phone', 4)
  const list = async (...filter: string[]): Promise<string[]> =>
    (await cli.json(['suppression', 'list', team.id, ...filter])).map(({ email }: Listed) => email[0])
  return { service, cli, team, list }
}

t.test('filters of the list combine, and the newest comes first', async (t) => {
  const { cli, team, list } = await begin(t)
  t.strictSame(await list(), ['d', 'c', 'b', 'a'])
  t.strictSame(await list('--cause', 'bounce'), ['c', 'a'])
  t.strictSame(await list('--response', 'blockLIST'), ['a'])
  t.strictSame(await list('--domain', 'one.example'), ['b', 'a'], 'the whole domain')
  t.strictSame(await list('--domain', 'b\u00fccher.example'), ['c'])
  t.strictSame(await list('--domain', 'xn--bcher-kva.example'), ['c'], 'in any form')
  t.strictSame(await list('--since', '2026-03-01T02:00:00Z', '--until', '2026-03-01T03:00:00Z'), ['c', 'b'])
  t.strictSame(await list('--domain', 'one.example', '--cause', 'complaint'), ['b'])
  t.strictSame(await list('--limit', '1'), ['d'])
  const [first] = await cli.json(['suppression', 'list', team.id, '--limit', '1'])
  t.strictSame(first, {
    ...{ email: 'd@sub.one.example', cause: 'manual', since: '2026-03-01T04:00:00.000Z' },
    ...{ email_id: null, response: 'asked by phone' },
  })
  await cli.fault(['suppression', 'list', team.id, '--cause', 'other'])
})

t.test('suppression lift removes all matches with one audit entry', async (t) => {
  const { service, cli, team, list } = await begin(t)
  const { call } = service
  const contact = { email: 'e@one.example' }
  await call('POST', '/v1/contacts', { key: team.key, body: contact })
  await cli.json(['suppression', 'add', team.id, 'e@one.example', '--cause', 'bounce', '--reason', 'x'])
  const filter = ['--domain', 'one.example', '--cause', 'bounce']
  const lift = (...more: string[]) =>
    cli.json(['suppression', 'lift', team.id, ...more, '--reason', 'delisted'])
  t.strictSame(await lift(...filter, '--dry-run'), { lifted: 0, would_lift: 2 })
  t.equal((await list()).length, 5)
  t.strictSame(await lift(...filter), { lifted: 2 })
  t.strictSame((await list()).sort(), ['b', 'c', 'd'])
  t.strictSame(await lift(...filter), { lifted: 0 })
  const shown = await call('GET', '/v1/contacts/e@one.example', { key: team.key })
  t.equal(shown.body.status, 'subscribed', 'the contact has its status of before')
  const entries = (await cli.json(['audit', 'list', '--team', team.id])).filter(
    ({ action }: { action: string }) => action === 'suppression.lift',
  )
  t.equal(entries.length, 1)
  t.match(entries[0], { subject: /\b2\b/, detail: /delisted/ })
})

t.test('exits with 1 without a suppression, reason or filter', async (t) => {
  const { cli, team } = await begin(t)
  t.match(await cli.json(['suppression', 'show', team.id, 'A@one.example']), { cause: 'bounce' })
  await cli.fault(['suppression', 'show', team.id, 'nobody@one.example'])
  const nobody = await cli.json(['suppression', 'lift', team.id, 'nobody@one.example', '--reason', 'x'])
  t.strictSame(nobody, { lifted: 0 }, 'nothing to lift is no error')
  const codes = await Promise.all(
    [
      ['suppression', 'lift', team.id, 'a@one.example'],
      ['suppression', 'lift', team.id, '--reason', 'x'],
      ['suppression', 'lift', team.id, 'a@one.example', '--domain', 'one.example', '--reason', 'x'],
      ['suppression', 'add', team.id, 'x@one.example', '--cause', 'soft_bounces'],
    ].map(async (args) => (await cli.run(args)).code),
  )
  t.strictSame(codes, [1, 1, 1, 1])
})

t.test('broadcasts skip suppressed addresses, and count them', async (t) => {
  const { service, cli, team } = await begin(t)
  const sink = await startSmtpSink(t)
  const casting = await broadcastingOf(service, team)
  await casting.contacts(['fine', 'gone', 'erased'])
  await cli.json(['suppression', 'add', team.id, 'erased@example.org', '--cause', 'complaint'])
  await erasePerson(service.deps, team.id, 'erased@example.org')
  await casting.contacts(['erased'])
  await service.database.query(sql.unsafe`
    insert into suppressed_addresses (team_id, identity, email, cause, since, response)
    values (${team.id}, 'gone@example.org', 'gone@example.org', 'manual', now(), '')`)
  const id = await casting.create()
  await casting.post(id, 'send')
  await startWorker(t, service, { smtp_url: sink.url })
  await until('it is sent', async () => (await casting.get(id)).body.state === 'sent')
  const { audience, stats } = (await casting.get(id)).body
  t.match(stats, { made: 1, skipped: 2, sent: 1 })
  t.equal(audience, 3)
  t.strictSame(sink.recipients().flat(), ['fine@example.org'])
  const skips = await cli.json(['broadcast', 'skips', team.id, id])
  const reasons = skips.map(({ reason }: { reason: string }) => reason)
  t.strictSame(reasons, ['suppressed', 'suppressed'])
})

t.test('a hashed complaint after a bounce stops transactional email', async (t) => {
  const { service, cli, team } = await begin(t)
  const add = (cause: string) =>
    cli.json(['suppression', 'add', team.id, 'both@example.org', '--cause', cause, '--reason', '550 5.1.1'])
  await add('bounce')
  await add('complaint')
  await erasePerson(service.deps, team.id, 'both@example.org')
  await startWorker(t, service, { smtp_url: (await startSmtpSink(t)).url })
  const sent = await sendEmail(service, team, { to: ['both@example.org'] })
  const show = () => cli.json(['email', 'show', team.id, sent])
  await until('it is done', async () => (await show()).status !== 'queued')
  t.match(await show(), { status: 'bounced', events: [{ kind: 'suppressed', detail: /^$/ }] })
})

t.test('owners rename the team and choose among three settings', async (t) => {
  const { service, cli, team } = await begin(t)
  const owner = await signedIn(service, { team: team.id, role: 'owner' })
  const page = `/teams/${team.id}/settings`
  t.match((await owner.get(page)).html, 'name="suppress_transactional"')
  for (const choice of ['bounces', 'bounces_and_complaints', 'nothing']) {
    t.match((await owner.get(page)).html, `value="${choice}"`)
    t.equal((await owner.post(page, { suppress_transactional: choice })).status, 303)
    t.equal((await cli.json(['team', 'show', team.id])).suppress_transactional, choice)
  }
  shows(t, await owner.get(page), /With “Hard bounces”, 2 addresses would get no transactional email\./)
  t.equal((await owner.post(page, { suppress_transactional: 'all' })).status, 400)
  t.equal((await owner.press(page, page, { name: 'Rye & Sons' })).status, 303)
  t.match(await cli.json(['team', 'show', team.id]), {
    name: 'Rye & Sons',
    suppress_transactional: 'nothing',
  })
  t.equal((await owner.press(page, page, { name: ' ' })).status, 400)
  const stale = formTo((await owner.get(page)).html, page)
  await cli.json(['team', 'set', team.id, '--suppress-transactional', 'bounces'])
  await owner.post(page, { ...stale, name: 'Rye' })
  t.match(
    await cli.json(['team', 'show', team.id]),
    { name: 'Rye', suppress_transactional: 'bounces' },
    'a stale form keeps the change of another owner',
  )
  const other = await makeTeam(service)
  t.not((await owner.get(`/teams/${other.id}/settings`)).status, 200)
})
