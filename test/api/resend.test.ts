/** Sends with the official resend package, and errors for its unsupported forms. */
import { Resend } from 'resend'
import { exampleMoment } from '../../db/validation/moments.ts'
import { world } from '../support/service.ts'
import t from '../support/tap.ts'

const { base, call, team } = await world(t)

const resend = new Resend(team.key, { baseUrl: `${base}/v1` })
const EMAIL = {
  from: 'Acme <hello@example.com>',
  to: ['ana@example.org'],
  subject: 'Hello',
  html: '<p>Hello</p>',
}

t.test('the resend package sends emails and creates contacts', async (t) => {
  for (const [nth, lists] of [
    {},
    { cc: [], bcc: [] },
    { cc: ['Ben <ben@example.org>'], bcc: ['archive@example.com'] },
  ].entries()) {
    const idempotencyKey = `resend-${nth}`
    const { data, error } = await resend.emails.send({ ...EMAIL, ...lists }, { idempotencyKey })
    t.equal(error, null)
    const body = { ...EMAIL, idempotency_key: idempotencyKey }
    const stored = await call('POST', '/v1/emails', { key: team.key, body })
    const { id, cc_emails = [], bcc_emails = [] } = stored.body
    const { cc = [], bcc = [] } = lists
    t.strictSame([stored.status, id, cc_emails, bcc_emails], [200, data?.id, cc, bcc])
  }
  const made = await resend.contacts.create({ email: 'resend@example.org' })
  t.equal(made.error, null)
  const found = await resend.contacts.get({ email: 'resend@example.org' })
  t.equal(found.error, null)
  t.equal(found.data?.id, made.data?.id)
  // A 204 has no body, which the package treats as an error.
  t.match((await resend.contacts.remove({ email: 'resend@example.org' })).error, {
    name: 'application_error',
  })
  t.equal((await call('GET', '/v1/contacts/resend@example.org', { key: team.key })).status, 404)
})

t.test('the resend package schedules, reschedules and cancels an email', async (t) => {
  const [time, later] = [3_600_000, 7_200_000].map((ms) => new Date(Date.now() + ms).toISOString())
  const email = { ...EMAIL, cc: ['ben@example.org'], bcc: ['archive@example.com'], scheduledAt: time }
  const { data, error } = await resend.emails.send(email as Parameters<typeof resend.emails.send>[0])
  t.equal(error, null)
  t.match(data, { scheduled_at: time, cc_emails: email.cc, bcc_emails: email.bcc })
  const id = data?.id ?? ''
  const moved = await resend.emails.update({ id, scheduledAt: later ?? '' })
  t.match(moved, { error: null, data: { id, scheduled_at: later } })
  const cancelled = await resend.emails.cancel(id)
  t.match(cancelled, { error: null, data: { id } })
  t.match(await resend.emails.cancel(id), {
    error: { error: { code: 'not_found', message: `No email ${id} in this team.` } },
  })
})

t.test('unsupported forms of the resend package get a helpful error', async (t) => {
  const refusal = async (changes: Record<string, unknown>) => {
    const { error } = await resend.emails.send({ ...EMAIL, ...changes } as never)
    return (error as unknown as { error: { message: string } }).error.message
  }
  const text = await refusal({ to: 'ana@example.org' })
  t.equal(text, 'to must be an array of email addresses, such as ["name@example.com"].')
  for (const field of ['cc', 'bcc'])
    t.equal(
      await refusal({ [field]: 'ben@example.org' }),
      `${field} must be an array of email addresses, such as ["name@example.com"].`,
    )
  t.equal(
    await refusal({ scheduledAt: 'in 1 min' }),
    `scheduled_at must be an RFC 3339 time with a time zone, such as ${exampleMoment(new Date())}.`,
  )
  t.equal(await refusal({ replyTo: ['ana@example.org'] }), 'reply_to must be a string with one address.')
  const tag = await refusal({ tags: [{ name: 'category', value: 'receipt' }] })
  t.equal(tag, 'tags[0] must be a string, such as "receipt".')
  const textOnly = await refusal({ html: undefined, text: 'Hi' })
  t.equal(textOnly, 'html or template_id is required. text is only sent alongside html.')
  const { body: page } = await call('GET', '/docs')
  const [section = ''] = /<section><h3 id="from-resend">.*?<\/section>/s.exec(page) ?? []
  for (const what of 'to replyTo tags cc bcc scheduledAt emails.cancel contacts.remove'.split(' '))
    t.match(section, `<code>${what}</code>`, 'and the guide says so beforehand')
  t.match(section, 'const error &#x3D; body?.error ?? body')
})
