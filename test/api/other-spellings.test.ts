/** Fields as other services spell them, which would change a call: each is rejected by our name. */
import { beginBroadcasting } from '../support/broadcasting.ts'
import { anEmail } from '../support/service.ts'
import t from '../support/tap.ts'
import { aMessage, makeTemplate } from '../support/whatsapp.ts'

const { service, team, draft } = await beginBroadcasting(t)
const { call } = service
const key = team.key
const post = (path: string, body: unknown) => call('POST', path, { key, body })
const AT = '2099-01-01T00:00:00Z'
const template = await makeTemplate(service, team.id)
const message = aMessage(template.id)
const file = { filename: 'a.txt', content: 'QQ==' }
const { id: broadcast } = (await post('/v1/broadcasts', draft())).body
await post('/v1/contacts', { email: 'ana@example.org' })

const CALLS = [
  ['POST', '/v1/emails', anEmail(), { scheduledAt: AT }, 'scheduled_at'],
  ['POST', '/v1/emails', anEmail(), { sendAt: AT }, 'scheduled_at'],
  ['POST', '/v1/emails', anEmail(), { replyTo: 'a@example.org' }, 'reply_to'],
  ['POST', '/v1/emails', anEmail(), { templateId: template.id }, 'template_id'],
  ['POST', '/v1/emails', anEmail(), { attachments: [{ ...file, contentId: 'logo' }] }, 'content_id'],
  ['POST', '/v1/whatsapp/messages', message, { scheduledAt: AT }, 'scheduled_at'],
  ['POST', '/v1/whatsapp/messages', message, { sendAt: AT }, 'scheduled_at'],
  ['POST', '/v1/whatsapp/messages', message, { templateId: template.id }, 'template_id'],
  ['POST', '/v1/broadcasts', draft(), { scheduledAt: AT }, 'send_at'],
  ['POST', '/v1/broadcasts', draft(), { sendAt: AT }, 'send_at'],
  ['POST', '/v1/broadcasts', draft(), { replyTo: 'a@example.org' }, 'reply_to'],
  ['POST', '/v1/broadcasts', draft(), { templateId: template.id }, 'template_id'],
  ['PATCH', `/v1/broadcasts/${broadcast}`, {}, { topicIds: [] }, 'topic_ids'],
  ['POST', `/v1/broadcasts/${broadcast}/send`, {}, { sendAt: AT }, 'send_at'],
  ['POST', '/v1/contacts', { email: 'b@example.org' }, { topicIds: [] }, 'topic_ids'],
  ['PATCH', '/v1/contacts/ana@example.org', {}, { topicIds: [] }, 'topic_ids'],
  ['POST', '/v1/marketing/unsubscribe', { email: 'ana@example.org' }, { topicIds: [] }, 'topic_ids'],
] as const

t.test('another service’s spelling is rejected by our name', async (t) => {
  for (const [method, path, valid, theirs, ours] of CALLS) {
    const reply = await call(method, path, { key, body: { ...valid, ...theirs } })
    const name = `${method} ${path} ${JSON.stringify(theirs)}`
    t.match(reply, { status: 400, body: { error: { code: 'bad_request' } } }, name)
    t.match(reply.body.error?.message, new RegExp(`\\b${ours}\\b`), name)
  }
})

t.test('a batch only rejects that item', async (t) => {
  const emails = [anEmail({ scheduledAt: AT }), anEmail()]
  const { body } = await post('/v1/emails/batch', { emails })
  t.match(body.data, [{ index: 0, error: { code: 'bad_request', message: /scheduled_at/ } }, { index: 1 }])
  t.type(body.data[1].id, 'string')
  const messages = await post('/v1/whatsapp/messages/batch', {
    messages: [{ ...message, sendAt: AT }, message],
  })
  t.match(messages.body.data[0].error, { code: 'bad_request', message: /scheduled_at/ })
})

t.test('null in another spelling is absent', async (t) => {
  const nothing = { scheduledAt: null, sendAt: null, replyTo: null, templateId: null }
  const attachments = [{ ...file, contentId: null }]
  t.equal((await post('/v1/emails', anEmail({ ...nothing, attachments }))).status, 201)
  t.equal((await post('/v1/contacts', { email: 'c@example.org', topicIds: null })).status, 201)
  t.equal((await post('/v1/broadcasts', draft({ ...nothing, topicIds: null }))).status, 201)
})
