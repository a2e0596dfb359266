/** The verbs of broadcasts, which call the same use cases as the API. */
import { adminCli } from '../../support/admin.ts'
import { beginBroadcasting } from '../../support/broadcasting.ts'
import { startDns } from '../../support/dns.ts'
import { SECRET_KEY } from '../../support/environment.ts'
import t from '../../support/tap.ts'

t.test('creates, changes, tests, starts, pauses, resumes and cancels a broadcast', async (t) => {
  const { service, team, draft, contacts } = await beginBroadcasting(t)
  const DNS_SERVER = (await startDns(t)).address
  const settings = { SECRET_KEY, DNS_SERVER, PUBLIC_URL: 'https://mail.example.com' }
  const cli = adminCli({ DATABASE_URL: service.url, ...settings })
  const run = (verb: string, ...args: string[]) => cli.json(['broadcast', verb, team.id, ...args])
  await contacts(['ana'])
  const created = await cli.json(['broadcast', 'create', team.id, '--file', '-'], {
    input: JSON.stringify(draft()),
  })
  t.match(created, { state: 'draft', name: 'Spring news', stats: { made: 0 } })
  const { id } = created
  const changed = await cli.json(['broadcast', 'update', team.id, id, '--file', '-'], {
    input: '{"name":"Summer"}',
  })
  t.match(changed, { id, name: 'Summer' })
  t.match(await run('list'), [{ id, name: 'Summer' }])
  t.match(await run('test', id, '--to', 'a@example.org,b@example.org', '--contact', 'ana@example.org'), [
    { to: 'a@example.org' },
    { to: 'b@example.org' },
  ])
  t.match(await run('start', id), { state: 'sending', audience: 1, warnings: [/DMARC/] })
  t.match(await run('pause', id), { state: 'paused' })
  t.match(await cli.fault(['broadcast', 'pause', team.id, id]), /The broadcast is paused/)
  t.match(await run('resume', id), { state: 'sending' })
  t.match(await run('cancel', id), { state: 'cancelled' })
  t.match(await run('show', id), { state: 'cancelled', state_reason: null, audience: 1 })
  t.strictSame(await run('skips', id), [])
  const lines = await cli.json(['audit', 'list'])
  t.match(
    lines
      .map(({ action }: { action: string }) => action)
      .filter((each: string) => each.startsWith('broadcast')),
    [
      ...'broadcast.cancel broadcast.resume broadcast.pause broadcast.start broadcast.test'.split(' '),
      ...'broadcast.update broadcast.create'.split(' '),
    ],
  )
})
