/** cc and bcc: validation, the row, and that they are one email. */
import { saveTemplate } from '../../db/content/templates/save.ts'
import { erasePerson } from '../support/erase.ts'
import { usedBy } from '../support/rows.ts'
import { anEmail, byCli, world } from '../support/service.ts'
import t from '../support/tap.ts'

const { service, call, cli, database, team } = await world(t, {
  publicUrl: 'https://mail.example',
  team: { rate: 10_000 },
})
const { key } = team

const send = (changes: Record<string, unknown>) => call('POST', '/v1/emails', { key, body: anEmail(changes) })
const batch = async (...emails: Record<string, unknown>[]) =>
  (await call('POST', '/v1/emails/batch', { key, body: { emails: emails.map(anEmail) } })).body.data
const refusal = async (changes: Record<string, unknown>): Promise<string> => {
  const { status, body } = await send(changes)
  return `${status} ${body.error?.code}: ${body.error?.message}`
}
const shown = (id: string) => cli.json(['email', 'show', team.id, id])
const some = (count: number, name = 'n') =>
  Array.from({ length: count }, (_, index) => `${name}${index}@example.org`)

const COPIES = {
  to: ['Ana <ana@example.org>', 'ben@example.org'],
  cc: ['Acme, Inc. <zoe@example.org>'],
  bcc: ['one@example.net', 'Two <two@example.net>'],
}
const LISTS = { to_emails: COPIES.to, cc_emails: ['"Acme, Inc." <zoe@example.org>'], bcc_emails: COPIES.bcc }

t.test('shows to, cc and bcc in order, even in replays', async (t) => {
  const first = await send({ ...COPIES, idempotency_key: 'copies-1' })
  t.match(first, { status: 201, body: LISTS })
  const again = await send({ to: ['x@example.org'], cc: ['y@example.org'], idempotency_key: 'copies-1' })
  t.strictSame([again.status, again.body], [200, first.body])
  t.match(await shown(first.body.id), { ...LISTS, waiting: { recipients: Object.values(LISTS).flat() } })
  const found = await cli.json(['email', 'find', '--team', team.id, '--recipient', 'TWO@example.net'])
  t.match(found, [{ id: first.body.id, ...LISTS }])
  const listed = await cli.json(['email', 'list', team.id])
  t.match(listed, [{ id: first.body.id, ...LISTS }])
})

t.test('batches accept copies like single sends', async (t) => {
  const [{ id }, refused] = await batch(COPIES, { ...COPIES, bcc: ['one@example.net', 'two'] })
  t.match(await shown(id), LISTS)
  t.match(refused, {
    index: 1,
    error: { code: 'bad_request', message: 'emails[1].bcc[1] must be an email address' },
  })
})

t.test('empty lists are absent from the row', async (t) => {
  const { body: cc } = await send({ cc: ['zoe@example.org'] })
  t.strictSame([cc.cc_emails, 'bcc_emails' in cc], [['zoe@example.org'], false])
  const { body: bcc } = await send({ cc: [], bcc: ['one@example.net'] })
  t.strictSame([bcc.bcc_emails, 'cc_emails' in bcc], [['one@example.net'], false])
  for (const none of [{}, { cc: null, bcc: null }, { cc: [], bcc: [] }]) {
    const { status, body } = await send(none)
    t.equal(status, 201)
    t.notOk('cc_emails' in body || 'bcc_emails' in body)
  }
  const [{ id }] = await batch({ cc: [], bcc: null })
  t.notOk('cc_emails' in (await shown(id)))
})

t.test('an email needs a recipient in to', async (t) => {
  t.match(await refusal({ to: [], cc: ['zoe@example.org'] }), /^400 bad_request: to must have at least 1/)
  t.match(await refusal({ to: null, bcc: ['zoe@example.org'] }), /^400 bad_request: to is required/)
})

t.test('to, cc and bcc have at most 50 recipients together', async (t) => {
  const words = 'to, cc and bcc must have at most 50 recipients in total.'
  t.equal((await send({ to: some(20), cc: some(20, 'c'), bcc: some(10, 'b') })).status, 201)
  t.equal(await refusal({ to: some(20), cc: some(20), bcc: some(11) }), `400 bad_request: ${words}`)
  t.equal(await refusal({ bcc: some(50) }), `400 bad_request: ${words}`)
  t.equal(await refusal({ from: 'nobody', to: some(50), cc: some(1) }), `400 bad_request: ${words}`)
  t.equal(await refusal({ cc: some(51) }), '400 bad_request: cc must have at most 50 recipients.')
  const [item] = await batch({ to: some(50), cc: ['x@example.org'], idempotency_key: 'copies-1' })
  t.equal(item.error.message, `emails[0].${words}`)
})

t.test('an email counts once, however many recipients it has', async (t) => {
  const before = (await usedBy(service, team.id)).emails
  await send({ to: some(10), cc: some(10, 'c'), bcc: some(10, 'b') })
  t.equal((await usedBy(service, team.id)).emails, before + 1)
})

t.test('only emails to one address have an unsubscribe token', async (t) => {
  const { body: contact } = await call('POST', '/v1/contacts', { key, body: { email: 'ana@example.org' } })
  const to = ['ana@example.org']
  const { body: same } = await send({ to, cc: ['Ana <ANA@example.org>'], bcc: ['ana@Example.org'] })
  t.match(same, { contact_id: contact.id, unsubscribe_token: String })
  for (const copies of [{ cc: ['zoe@example.org'] }, { bcc: ['one@example.net'] }])
    t.match((await send({ to, ...copies })).body, { contact_id: null, unsubscribe_token: null })
  t.match((await send({ to: ['x@example.org'], bcc: to })).body, { contact_id: null })
  const link = { name: 'Link', html: '<a href="{{unsubscribe_url}}">x</a>', text: '' }
  const { id: template_id } = await saveTemplate(byCli(database), team.id, link)
  const linked = { html: undefined, template_id, to }
  t.match((await send(linked)).body.html, 'https://mail.example/u/')
  t.match(await refusal({ ...linked, bcc: ['one@example.net'] }), /^400 bad_request: .*unsubscribe_url/)
  const own = { variables: { unsubscribe_url: 'https://own.example' }, bcc: ['one@example.net'] }
  t.match((await send({ ...linked, ...own })).body.html, 'https://own.example')
})

t.test('the headers Cc and Bcc are always reserved', async (t) => {
  for (const name of ['Cc', 'bcc', 'BCC'])
    t.match(await refusal({ ...COPIES, headers: { [name]: 'x@example.org' } }), '400 invalid_headers: ')
})

t.test('erasing a recipient in any list leaves a placeholder', async (t) => {
  const { id } = (await send(COPIES)).body
  await erasePerson(service.deps, team.id, 'two@example.net')
  t.match(await shown(id), { ...LISTS, bcc_emails: ['one@example.net', 'erased@erased.invalid'] })
  await erasePerson(service.deps, team.id, 'zoe@example.org')
  await erasePerson(service.deps, team.id, 'ana@example.org')
  const left = await shown(id)
  t.match(left, {
    to_emails: ['erased@erased.invalid', 'ben@example.org'],
    cc_emails: ['erased@erased.invalid'],
    waiting: { recipients: ['ben@example.org', 'one@example.net'] },
  })
  t.notMatch(JSON.stringify(left), /ana@|zoe@|two@/)
  await erasePerson(service.deps, team.id, 'ben@example.org')
  t.strictSame((await shown(id)).waiting.recipients, ['one@example.net'])
  await erasePerson(service.deps, team.id, 'one@example.net')
  t.match(await cli.fault(['email', 'show', team.id, id]), /^No email/, 'nobody waits for it now')
})
