/** Creates very many contacts of a topic with one statement, and the draft of a broadcast to them. */
import { sql } from 'slonik'
import { createTopic } from '../../db/audience/contacts/topics.ts'
import { saveTemplate } from '../../db/content/templates/save.ts'
import type { Database } from '../../db/postgres/pool.ts'

const HTML = '<p>Dear {{name}}, <a href="{{unsubscribe_url}}">no more</a></p>'

type Many = {
  contacts: number
  /** One in this number has the topic. All by default. */
  of_topic?: number
  /**
   * One in `blank` contacts has no value for the template's variable, and one in `unsubscribed` has
   * unsubscribed. None by default.
   */
  blank?: number
  unsubscribed?: number
}

/** Creates a template, a topic and the contacts. @returns the body of a complete draft. */
export async function makeAudience(
  database: Database,
  teamId: string,
  { contacts, of_topic = 1, blank = contacts + 3, unsubscribed = contacts + 3 }: Many,
): Promise<Record<string, unknown>> {
  const at = { now: new Date(), actor: 'test' }
  const [template, topic] = await database.transaction(async (tx) => [
    await saveTemplate({ tx, ...at }, teamId, { name: 'News', html: HTML, text: '' }),
    await createTopic({ tx, ...at, actor: 'cli' }, teamId, { name: 'News' }),
  ])
  await database.query(sql.unsafe`
    insert into contacts (team_id, id, email, identity, status, properties, topic_ids, created_at, updated_at)
    select ${teamId}, (lpad(to_hex(1700000000000 + n), 12, '0') || '7000' || lpad(to_hex((1::bigint << 63) + n), 16, '0'))::uuid,
      'person' || n || '@example.org', 'person' || n || '@example.org',
      case when (n + 1) % ${unsubscribed}::int = 0 then 'unsubscribed' else 'subscribed' end,
      case when (n + 2) % ${blank}::int = 0 then '{}'::jsonb else jsonb_build_object('name', 'Person ' || n) end,
      case when n % ${of_topic}::int = 0 then array[${topic.id}::uuid] else '{}' end, now() - interval '1 day', now()
    from generate_series(1, ${contacts}::int) n`)
  await database.query(sql.unsafe`analyze contacts`)
  return {
    name: 'News',
    template_id: template.id,
    from: 'hello@example.com',
    subject: 'News for {{name}}',
    topic_ids: [topic.id],
  }
}
