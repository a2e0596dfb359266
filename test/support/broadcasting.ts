/** Set-up for tests of broadcasts: a service with public links, a template, a topic, contacts, a draft. */
import { randomUUID } from 'node:crypto'
import type { Test } from 'tap'
import { createTopic } from '../../db/audience/contacts/topics.ts'
import { saveTemplate } from '../../db/content/templates/save.ts'
import { makeTeam, type Service, startService, type TeamLimits, type TestTeam } from './service.ts'

export const PUBLIC_URL = 'https://mail.example.com'
const HTML = '<p>Dear {{name}}, <a href="{{unsubscribe_url}}">no more</a></p>'

export type Broadcasting = {
  service: Service
  team: TestTeam
  template_id: string
  topic_id: string
  /** Creates contacts with the topic. */
  contacts(names: readonly string[], properties?: Record<string, string>): Promise<string[]>
  /** Returns the body of a complete draft. */
  draft(changes?: Record<string, unknown>): Record<string, unknown>
  /** Creates a draft. @returns its id. */
  create(changes?: Record<string, unknown>): Promise<string>
  post(id: string, verb: string, body?: unknown): ReturnType<Service['call']>
  get(id: string): ReturnType<Service['call']>
}

export async function beginBroadcasting(
  t: Test,
  {
    publicUrl = PUBLIC_URL,
    html = HTML,
    ...limits
  }: { publicUrl?: string | null; html?: string } & TeamLimits = {},
): Promise<Broadcasting> {
  const service = await startService(t, { publicUrl })
  return broadcastingOf(service, await makeTeam(service, limits), html)
}

/** Does the same for another team of a service. */
export async function broadcastingOf(service: Service, team: TestTeam, html = HTML): Promise<Broadcasting> {
  const { database, call } = service
  const { key } = team
  const at = { now: new Date(), actor: 'test' }
  const [template_id, topic_id] = await database.transaction(async (tx) => [
    (await saveTemplate({ tx, ...at }, team.id, { name: `News ${randomUUID()}`, html, text: '' })).id,
    (await createTopic({ tx, ...at, actor: 'cli' }, team.id, { name: `Topic ${randomUUID()}` })).id,
  ])
  const draft = (changes: Record<string, unknown> = {}) => ({
    name: 'Spring news',
    template_id,
    from: 'Acme <news@example.com>',
    subject: 'News for {{name}}',
    topic_ids: [topic_id],
    ...changes,
  })
  return {
    service,
    team,
    template_id,
    topic_id,
    async contacts(names, properties) {
      const ids: string[] = []
      for (const name of names) {
        const body = {
          email: `${name}@example.org`,
          properties: properties ?? { name },
          topic_ids: [topic_id],
        }
        const { status, body: contact } = await call('POST', '/v1/contacts', { key, body })
        if (status !== 201) throw new Error(`no contact was made: ${status} ${JSON.stringify(contact)}`)
        ids.push(contact.id)
      }
      return ids
    },
    draft,
    create: async (changes) => (await call('POST', '/v1/broadcasts', { key, body: draft(changes) })).body.id,
    post: (id, verb, body) =>
      call('POST', `/v1/broadcasts/${id}/${verb}`, { key, ...(body === undefined ? {} : { body }) }),
    get: (id) => call('GET', `/v1/broadcasts/${id}`, { key }),
  }
}
