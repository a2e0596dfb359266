/**
 * No request can read or change another team's rows (design §8, promise 5). Every route that takes a credential has
 * a line here: what one team asks with the other team's ids, and the answer, the same as for ids that nobody has.
 */

import t from 'tap'
import { v7 as uuidv7 } from 'uuid'
import { ROUTES } from '../../api/app.ts'
import { createTopic } from '../../db/contacts/topics.ts'
import { saveTemplate } from '../../db/templates/save.ts'
import { jobsOf, usedBy } from '../support/rows.ts'
import { anEmail, makeKey, makeTeam, startService } from '../support/service.ts'
import { makeTemplate } from '../support/whatsapp.ts'
import { startWorker } from '../support/worker.ts'

const service = await startService(t)
await startWorker(t, service, { smtp_url: 'smtp://127.0.0.1:1' })
const [mine, theirs] = [await makeTeam(service), await makeTeam(service, { domain: 'example.net' })]
const at = { tx: service.database, now: new Date() }
const template = await saveTemplate(at, theirs.id, { name: 'A', html: '<p>secret</p>', text: '' })
const topic = await createTopic(at, theirs.id, { name: 'News' })
const { id: whatsapp } = await makeTemplate(service, theirs.id)
const email = 'someone@example.org'
await service.call('POST', '/v1/contacts', { key: theirs.key, body: { email, properties: { secret: 'x' } } })
const sent = await service.call('POST', '/v1/emails', {
  key: theirs.key,
  body: anEmail({ from: 'a@example.net', idempotency_key: 'k' }),
})

type Ask = { path?: string; body?: unknown; expect: string }

/** With the other team's ids, or with ones that nobody has. */
const asks = (ids: {
  template: string
  topic: string
  whatsapp: string
  email: string
}): Record<string, Ask> => {
  const contact = `/v1/contacts/${encodeURIComponent(ids.email)}`
  const message = { template_id: ids.whatsapp, to: ['+15555550100'], parameters: { 'body:1': 'x' } }
  return {
    'POST /v1/contacts': {
      body: { email: 'new@example.org', topic_ids: [ids.topic] },
      expect: '400 bad_request',
    },
    'GET /v1/contacts': { path: `/v1/contacts?email=${encodeURIComponent(ids.email)}`, expect: '200' },
    'GET /v1/contacts/:email': { path: contact, expect: '404 contact_not_found' },
    'PATCH /v1/contacts/:email': { path: contact, body: {}, expect: '404 contact_not_found' },
    'DELETE /v1/contacts/:email': { path: contact, expect: '404 contact_not_found' },
    'POST /v1/contacts/:email/unsubscribe': {
      path: `${contact}/unsubscribe`,
      expect: '404 contact_not_found',
    },
    'POST /v1/contacts/:email/resubscribe': {
      path: `${contact}/resubscribe`,
      expect: '404 contact_not_found',
    },
    'POST /v1/contacts/bulk': { body: { contacts: [] }, expect: '200' },
    'POST /v1/marketing/unsubscribe': { body: { email: ids.email }, expect: '404 contact_not_found' },
    'POST /v1/emails': { body: anEmail({ template_id: ids.template }), expect: '404 not_found' },
    'POST /v1/emails/batch': { body: { emails: [anEmail({ template_id: ids.template })] }, expect: '200' },
    'POST /v1/whatsapp/messages': { body: message, expect: '404 not_found' },
    'POST /v1/whatsapp/messages/batch': { body: { messages: [message] }, expect: '200' },
  }
}

t.test('another team’s ids answer like ids that nobody has, on every route', async (t) => {
  const foreign = asks({ template: template.id, topic: topic.id, whatsapp, email })
  const unknown = asks({
    template: uuidv7(),
    topic: uuidv7(),
    whatsapp: uuidv7(),
    email: 'nobody@example.org',
  })
  const routes = ROUTES.filter(({ access }) => access !== 'public').map(
    ({ method, path }) => `${method} ${path}`,
  )
  t.strictSame(Object.keys(foreign).sort(), routes.sort(), 'every route has its line')
  const plain = (body: unknown) =>
    JSON.stringify(body)
      .replace(/[0-9a-f-]{36}/g, 'id')
      .replaceAll('nobody@', 'someone@')
  for (const [route, ask] of Object.entries(foreign)) {
    const [method = '', path = ''] = route.split(' ')
    const answer = async ({ path: own, body }: Ask) =>
      await service.call(method, own ?? path, { key: mine.key, ...(body === undefined ? {} : { body }) })
    const reply = await answer(ask)
    t.equal(`${reply.status} ${reply.body.error?.code ?? ''}`.trim(), ask.expect, route)
    t.equal(plain(reply.body), plain((await answer(unknown[route] ?? ask)).body), route)
    t.notMatch(JSON.stringify(reply.body), /secret/)
  }
})

t.test('another team’s domain cannot be sent from', async (t) => {
  const body = anEmail({ from: 'a@example.net' })
  t.equal(
    (await service.call('POST', '/v1/emails', { key: mine.key, body })).body.error.code,
    'from_domain_not_verified',
  )
  const bound = await makeKey(service, mine.id, { domain: 'example.net' })
  t.equal(
    (await service.call('POST', '/v1/emails', { key: bound, body })).body.error.code,
    'from_domain_not_verified',
  )
})

t.test('another team’s idempotency key is no replay', async (t) => {
  const { status, body } = await service.call('POST', '/v1/emails', {
    key: mine.key,
    body: anEmail({ idempotency_key: 'k' }),
  })
  t.equal(status, 201)
  t.not(body.id, sent.body.id)
})

t.test('the other team is as it was', async (t) => {
  const contact = await service.call('GET', `/v1/contacts/${email}`, { key: theirs.key })
  t.match(contact.body, { status: 'subscribed', properties: { secret: 'x' } })
  t.strictSame(await usedBy(service, theirs.id), { emails: 1, whatsapp: 0, contacts: 1 })
  t.equal((await jobsOf(service, theirs.id)).length, 1)
})
