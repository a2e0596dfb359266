/** The verbs of contacts. */
import { report } from '../../support/contacts.ts'
import { storeContact } from '../../support/reports.ts'
import { anEmail, world } from '../../support/service.ts'
import t from '../../support/tap.ts'
import { aMessage, makeTemplate } from '../../support/whatsapp.ts'

t.test('contact list shows a suppression, and lift removes it', async (t) => {
  const { service, cli, team_id: team } = await world(t)
  await storeContact(service, team, 'Ana@example.org')
  await storeContact(service, team, 'bob@example.org')
  await report(service, { id: team }, 'ana@example.org', 'bounced')

  t.match(await cli.json(['contact', 'list', team]), [
    { email: 'bob@example.org' },
    { email: 'Ana@example.org' },
  ])
  t.match(await cli.json(['contact', 'list', team, '--status', 'bounced']), [{ email: 'Ana@example.org' }])
  t.same(await cli.json(['contact', 'list', team, '--email', 'carol']), [])
  t.match(await cli.json(['contact', 'show', team, 'ana@EXAMPLE.org']), {
    email: 'Ana@example.org',
    suppression: 'bounced',
    suppression_cause: { what: 'permanent bounce', detail: 'the words of a server', report_id: null },
  })
  const lift = ['contact', 'lift', team, 'ana@example.org']
  t.match(await cli.fault(lift), /--reason/)
  t.match(await cli.json([...lift, '--reason', 'the mailbox is back']), {
    status: 'subscribed',
    suppression: null,
  })
  for (const email of ['ana@example.org', 'bob@example.org', 'unknown@example.org'])
    t.match(await cli.fault(['contact', 'lift', team, email, '--reason', 'again']), /isn't suppressed/, email)
  t.match(await cli.fault(['contact', 'show', team, 'eve@example.org']), /No contact/)
  const suppress = ['contact', 'suppress', team, 'eve@example.org', '--as', 'complained']
  t.match(await cli.fault(suppress), /--reason/)
  t.match(await cli.json([...suppress, '--reason', 'asked by post']), {
    ...{ email: 'eve@example.org', cause: 'complaint', email_id: null, response: 'asked by post' },
  })
  t.match(await cli.fault([...suppress, '--reason', 'again']), /must be an address that isn't suppressed/)
  t.match(await cli.fault(['contact', 'show', team, 'eve@example.org']), /No contact/, 'it makes none')
  const bounced = ['contact', 'suppress', team, 'dan@example.org', '--as', 'bounced', '--reason', 'x']
  t.match(await cli.json(bounced), { email: 'dan@example.org', cause: 'bounce' })
  const liftEve = ['contact', 'lift', team, 'eve@example.org', '--reason', 'asked again']
  t.match(await cli.json(liftEve), { email: 'eve@example.org', cause: 'complaint' })
})

t.test('contact show lists emails in any spelling, and WhatsApp messages', async (t) => {
  const { service, cli, team } = await world(t)
  const { id: template } = await makeTemplate(service, team.id)
  const contact = { email: 'Ana@example.org', properties: { mobile: '+49 151 23456789', city: 'Bonn' } }
  const post = (path: string, body: object) => service.call('POST', path, { key: team.key, body })
  await post('/v1/contacts', contact)
  const { id } = (await post('/v1/emails', anEmail({ to: ['ANA@example.org'] }))).body
  await post('/v1/emails', anEmail({ to: ['bob@example.org'] }))
  await post('/v1/whatsapp/messages', aMessage(template, { to: ['+4915123456789'] }))
  await post('/v1/whatsapp/messages', aMessage(template, { to: ['+4915100000000'] }))
  const shown = await cli.json(['contact', 'show', team.id, 'ana@example.org'])
  t.match(shown.emails, [{ id, status: 'queued' }])
  t.match(shown.whatsapp_messages, [{ recipient: '+4915123456789', status: 'queued' }])
  t.equal(shown.emails.length + shown.whatsapp_messages.length, 2)
})
