/**
 * No request can read or change another team's rows. Each route with credentials has entries here: calls with
 * IDs of the other team, and the response, which equals the one for unknown IDs. Everything that an entry
 * names exists with the right type, so that each call reaches the queries that separate teams.
 */
import { v7 as uuidv7 } from 'uuid'
import { ROUTES } from '../../api/app.ts'
import { createTopic } from '../../db/audience/contacts/topics.ts'
import { saveTemplate } from '../../db/content/templates/save.ts'
import { jobsOf, usedBy } from '../support/rows.ts'
import { anEmail, makeKey, makeSession, makeTeam, type Reply, startService } from '../support/service.ts'
import t from '../support/tap.ts'
import { makeTemplate } from '../support/whatsapp.ts'
import { startWorker } from '../support/worker.ts'

const service = await startService(t)
await startWorker(t, service, { smtp_url: 'smtp://127.0.0.1:1' })
const [mine, theirs] = [await makeTeam(service), await makeTeam(service, { domain: 'example.net' })]
const session = await makeSession(service, mine.id)
const at = { tx: service.database, now: new Date(), actor: 'cli' }
const template = await saveTemplate(at, theirs.id, { name: 'A', html: '<p>secret</p>', text: '' })
const topic = await createTopic(at, theirs.id, { name: 'News' })
const { id: whatsapp } = await makeTemplate(service, theirs.id)

const asThem = (path: string, body: unknown): Promise<Reply> =>
  service.call('POST', path, { key: theirs.key, body })

const email = 'someone@example.org'
const MINE = 'mine@example.org'
const contact = await asThem('/v1/contacts', { email, topic_ids: [topic.id], properties: { secret: 'x' } })
await service.call('POST', '/v1/contacts', { key: mine.key, body: { email: MINE } })
const sent = await asThem('/v1/emails', anEmail({ from: 'a@example.net', idempotency_key: 'k' }))
const message = { template_id: whatsapp, to: ['+15555550100'], parameters: { 'body:1': 'x' } }
const messaged = await asThem('/v1/whatsapp/messages', { ...message, idempotency_key: 'k' })

const scheduled_at = new Date(Date.now() + 86_400_000).toISOString()
const waiting = await asThem('/v1/emails', anEmail({ from: 'a@example.net', scheduled_at }))
const waitingMessage = await asThem('/v1/whatsapp/messages', { ...message, scheduled_at })
const moved = { scheduled_at }

const upload = await service.call('POST', '/v1/attachments?filename=secret.txt', {
  key: theirs.key,
  raw: 'secret',
})
const planned = await asThem('/v1/broadcasts', {
  name: 'secret',
  template_id: template.id,
  from: 'a@example.net',
  subject: 'secret',
  topic_ids: [topic.id],
})

type Ids = {
  template: string
  topic: string
  whatsapp: string
  attachment: string
  broadcast: string
  email: string
  from: string
  key: string
  waiting: string
  waitingMessage: string
}
/** `expect`: the status, and the error code of the call or of its first item. */
type Ask = { path?: string; body?: unknown; expect: string }

/**
 * Returns calls with these IDs, of the other team or unknown. Calls that create rows of the calling team come
 * last.
 */
const asks = (ids: Ids): Record<string, Ask[]> => {
  const path = `/v1/contacts/${encodeURIComponent(ids.email)}`
  const none = '404 contact_not_found'
  const templated = anEmail({ template_id: ids.template, idempotency_key: ids.key })
  const elsewhere = anEmail({ from: ids.from })
  const whatsapp = { ...message, template_id: ids.whatsapp, idempotency_key: ids.key }
  const broadcast = `/v1/broadcasts/${ids.broadcast}`
  const noBroadcast = '404 not_found'
  const draft = {
    name: 'N',
    template_id: ids.template,
    from: 'a@example.com',
    subject: 'S',
    topic_ids: [ids.topic],
  }
  return {
    'GET /v1/broadcasts': [{ expect: '200' }],
    'POST /v1/broadcasts': [{ body: draft, expect: noBroadcast }],
    'GET /v1/broadcasts/:id': [{ path: broadcast, expect: noBroadcast }],
    'PATCH /v1/broadcasts/:id': [{ path: broadcast, body: { name: 'stolen' }, expect: noBroadcast }],
    'DELETE /v1/broadcasts/:id': [{ path: broadcast, expect: noBroadcast }],
    'POST /v1/broadcasts/:id/test': [
      { path: `${broadcast}/test`, body: { to: ['a@example.com'], contact: ids.email }, expect: noBroadcast },
    ],
    'POST /v1/broadcasts/:id/send': [{ path: `${broadcast}/send`, body: {}, expect: noBroadcast }],
    'POST /v1/broadcasts/:id/pause': [{ path: `${broadcast}/pause`, expect: noBroadcast }],
    'POST /v1/broadcasts/:id/resume': [{ path: `${broadcast}/resume`, expect: noBroadcast }],
    'POST /v1/broadcasts/:id/cancel': [{ path: `${broadcast}/cancel`, expect: noBroadcast }],
    'GET /v1/contacts': [
      { expect: '200' },
      { path: `/v1/contacts?email=${encodeURIComponent(ids.email)}&status=subscribed`, expect: '200' },
    ],
    'GET /v1/contacts/:email': [{ path, expect: none }],
    'PATCH /v1/contacts/:email': [
      { path, body: { properties: { stolen: 'x' }, topic_ids: [] }, expect: none },
      { path: `/v1/contacts/${MINE}`, body: { topic_ids: [ids.topic] }, expect: '400 bad_request' },
    ],
    'DELETE /v1/contacts/:email': [{ path, expect: none }],
    'POST /v1/contacts/:email/unsubscribe': [{ path: `${path}/unsubscribe`, expect: none }],
    'POST /v1/contacts/:email/resubscribe': [{ path: `${path}/resubscribe`, expect: none }],
    'POST /v1/marketing/unsubscribe': [
      { body: { email: ids.email }, expect: none },
      { body: { email: ids.email, topic_ids: [ids.topic] }, expect: none },
      { body: { email: MINE, topic_ids: [ids.topic] }, expect: '204' },
    ],
    'POST /v1/emails': [
      { body: templated, expect: '404 not_found' },
      { body: elsewhere, expect: '422 from_domain_not_verified' },
      { body: anEmail({ attachments: [{ attachment_id: ids.attachment }] }), expect: '404 not_found' },
      { body: anEmail({ to: [ids.email] }), expect: '201' },
    ],
    'POST /v1/emails/batch': [
      { body: { emails: [templated] }, expect: '200 not_found' },
      { body: { emails: [elsewhere] }, expect: '200 from_domain_not_verified' },
    ],
    'POST /v1/emails/:id/cancel': [{ path: `/v1/emails/${ids.waiting}/cancel`, expect: '404 not_found' }],
    'PATCH /v1/emails/:id': [{ path: `/v1/emails/${ids.waiting}`, body: moved, expect: '404 not_found' }],
    'POST /v1/attachments': [{ path: '/v1/attachments?filename=a.txt', body: {}, expect: '201' }],
    'POST /v1/whatsapp/messages': [{ body: whatsapp, expect: '404 not_found' }],
    'POST /v1/whatsapp/messages/:id/cancel': [
      { path: `/v1/whatsapp/messages/${ids.waitingMessage}/cancel`, expect: '404 not_found' },
    ],
    'PATCH /v1/whatsapp/messages/:id': [
      { path: `/v1/whatsapp/messages/${ids.waitingMessage}`, body: moved, expect: '404 not_found' },
    ],
    'POST /v1/whatsapp/messages/batch': [{ body: { messages: [whatsapp] }, expect: '200 not_found' }],
    'POST /v1/contacts/bulk': [
      { body: { contacts: [{ email: ids.email, properties: { stolen: 'x' } }] }, expect: '200' },
    ],
    'POST /v1/contacts': [
      { body: { email: `new-${ids.email}`, topic_ids: [ids.topic] }, expect: '400 bad_request' },
      { body: { email: `own-${ids.email}` }, expect: '201' },
    ],
  }
}

/**
 * Returns a response without random values, and with the names of the other team instead of the unknown ones.
 */
const plain = ({ body }: Reply): string =>
  JSON.stringify(body)
    .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'id')
    .replace(/"unsubscribe_token":"[^"]+"/g, '"unsubscribe_token":"token"')
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'time')
    .replaceAll('nobody@', 'someone@')
    .replaceAll('example.invalid', 'example.net')

const outcomeOf = ({ status, body }: Reply): string =>
  `${status} ${(body.error ?? body.data?.[0]?.error)?.code ?? ''}`.trim()

const ROUTES_OF_TEAMS = ROUTES.filter(({ access }) => access !== 'public')
const foreign = asks({
  template: template.id,
  topic: topic.id,
  whatsapp,
  attachment: upload.body.id,
  broadcast: planned.body.id,
  email,
  from: 'a@example.net',
  key: 'k',
  waiting: waiting.body.id,
  waitingMessage: waitingMessage.body.data[0].id,
})
const unknown = asks({
  template: uuidv7(),
  topic: uuidv7(),
  whatsapp: uuidv7(),
  attachment: uuidv7(),
  broadcast: uuidv7(),
  email: 'nobody@example.org',
  from: 'a@example.invalid',
  key: 'free',
  waiting: uuidv7(),
  waitingMessage: uuidv7(),
})

t.test('every route for teams has entries', async (t) => {
  const routes = ROUTES_OF_TEAMS.map(({ method, path }) => `${method} ${path}`)
  t.strictSame(Object.keys(foreign).sort(), routes.sort(), 'asks in this file has calls of each route')
  for (const [route, lines] of Object.entries(foreign)) t.ok(lines.length > 0, route)
})

for (const [credential, key] of Object.entries({ 'a session token': session, 'an API key': mine.key })) {
  t.test(`another team’s IDs look unknown with ${credential}`, async (t) => {
    const rows = [contact.body.id, sent.body.id, messaged.body.data[0].id, theirs.id, theirs.domain_id]
    for (const [route, lines] of Object.entries(foreign)) {
      const [method = '', path = ''] = route.split(' ')
      const { access } = ROUTES_OF_TEAMS.find((one) => `${one.method} ${one.path}` === route) ?? {}
      const mayAsk = key === mine.key || (access !== 'public' && access?.kinds.includes('session'))
      for (const [index, line] of lines.entries()) {
        const answer = ({ path: own, body }: Ask) =>
          service.call(method, own ?? path, { key, ...(body === undefined ? {} : { body }) })
        const reply = await answer(line)
        const title = `${route} [${index}]`
        t.equal(outcomeOf(reply), mayAsk ? line.expect : '403 insufficient_scope', title)
        t.equal(plain(reply), plain(await answer(unknown[route]?.[index] ?? line)), title)
        const shown = JSON.stringify(reply.body)
        t.notMatch(shown, /secret/, title)
        for (const id of rows) t.notOk(shown.includes(id), `${title} shows a row of theirs`)
      }
    }
  })
}

t.test('a key with another team’s domain can’t send from it', async (t) => {
  const bound = await makeKey(service, mine.id, { domain: 'example.net' })
  const { body } = await service.call('POST', '/v1/emails', {
    key: bound,
    body: anEmail({ from: 'a@example.net' }),
  })
  t.equal(body.error.code, 'from_domain_not_verified')
})

t.test('another team’s idempotency key isn’t a replay', async (t) => {
  const { status, body } = await service.call('POST', '/v1/emails', {
    key: mine.key,
    body: anEmail({ idempotency_key: 'k' }),
  })
  t.equal(status, 201)
  t.not(body.id, sent.body.id)
})

t.test('the other team’s data is unchanged', async (t) => {
  const found = await service.call('GET', `/v1/contacts/${email}`, { key: theirs.key })
  t.strictSame(found.body, contact.body)
  t.strictSame(await usedBy(service, theirs.id), { emails: 2, whatsapp: 2, contacts: 1, storage: 6 })
  t.equal((await jobsOf(service, theirs.id)).length, 2)
})
