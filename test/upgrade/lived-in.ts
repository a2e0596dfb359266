/**
 * A team's data of half a year, by the command line of the version before and by plain SQL on what 0.1.0 has: the
 * schema may be older than this checkout, whose own statements need not run there.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Client } from 'pg'
import { sql } from 'slonik'
import { uuidAt } from '../support/uuid-sql.ts'

/** How many contacts a broadcast reaches, and how many others there are. */
export const AUDIENCE = 1_000
const OTHERS = 3_000

export type LivedIn = {
  team: string
  key: string
  /** A one-time path to the dashboard of an owner, after its origin. */
  login: string
  /** An email of months ago. */
  old: string
  /** The body of a broadcast that can be sent. */
  draft: Record<string, unknown>
}

type Admin = (...args: string[]) => Promise<{ id: string; key: string; url: string }>

const SCOPES = 'emails:send,contacts:write,broadcasts:write,broadcasts:send'
const HTML = '<p>Dear {{name}}, <a href="{{unsubscribe_url}}">no more</a></p>'

const HISTORY = `
  with item as materialized (
    select ${uuidAt(sql.fragment`now() - make_interval(mins => 60 * n)`).sql} as id, now() - make_interval(mins => 60 * n) as at, n,
      (array['delivered', 'opened', 'clicked', 'sent', 'bounced', 'complained', 'delivered', 'delivered'])[1 + n % 8] as status
    from generate_series(1, 4000) n
  ), accepted as (
    insert into accepted_emails (team_id, id, domain_id, from_address, to_emails, subject, html, tags, created_at, reply_to)
    select $1, id, $2, 'hello@example.com', array['person' || n || '@example.net'], 'Your invoice', '<p>Hello</p>', '[]', at, ''
    from item
  ), states as (
    insert into email_states (team_id, id, created_at, internal, status, size_kb, provider_message_id)
    select $1, id, at, false, status, 1, id::text from item
  )
  insert into email_events (team_id, email_id, event_key, kind, recipient, occurred_at, detail)
  select $1, id, decode(md5(id::text), 'hex'), status, 'person' || n || '@example.net', at, '' from item`

const CONTACTS = `
  insert into contacts (team_id, id, email, identity, status, properties, topic_ids, created_at, updated_at)
  select $1, gen_random_uuid(), who || n || '@example.org', who || n || '@example.org', 'subscribed',
    jsonb_build_object('name', 'Person ' || n), case when n <= $3 then array[$2::uuid] else '{}' end,
    now() - make_interval(hours => n), now()
  from generate_series(1, $4::int) n cross join (values ('person-')) as name (who)`

const WHATSAPP = `
  insert into whatsapp_messages (team_id, id, request_id, position, recipient, status, created_at, accepted_at)
  select $1, ${uuidAt(sql.fragment`now() - make_interval(hours => n)`).sql}, gen_random_uuid(), 0, '+1555555' || lpad(n::text, 4, '0'),
    (array['read', 'delivered', 'sent', 'failed'])[1 + n % 4], now() - make_interval(hours => n), now() - make_interval(hours => n)
  from generate_series(1, 500) n`

const WEBHOOKS = `
  insert into webhook_messages (team_id, id, endpoint_id, event_id, type, body, status, created_at)
  select $1, ${uuidAt(sql.fragment`now() - make_interval(hours => n)`).sql}, $2, gen_random_uuid(), 'email.delivered', '{"type": "email.delivered"}',
    case when n % 9 = 0 then 'failed' else 'delivered' end, now() - make_interval(hours => n)
  from generate_series(1, 500) n`

/** Creates the team. @param scratch a folder for files. */
export async function liveIn(client: Client, admin: Admin, scratch: string): Promise<LivedIn> {
  const { id: team } = await admin('team', 'create', '--name', 'Acme', '--plan', 'pro')
  await admin('team', 'plan', team, '--rate', '1000', '--emails', '1000000', '--contacts', '100000')
  await admin('domain', 'add', team, 'example.com', '--verified')
  const { key } = await admin('key', 'create', team, '--name', 'load', '--scopes', SCOPES)
  const { url } = await admin('login', 'owner@example.com', '--team', team, '--role', 'owner')
  const html = join(scratch, 'news.html')
  await writeFile(html, HTML)
  const { id: template_id } = await admin('template', 'create', team, '--name', 'News', '--html', html)
  const { id: topic } = await admin('topic', 'create', team, '--name', 'News')
  // It hears of nothing that happens on the way.
  const hook = ['--url', 'https://hooks.example.com/in', '--types', 'email.complained']
  const { id: endpoint } = await admin('webhook', 'add', team, ...hook)
  const { rows } = await client.query<{ id: string }>('select id from domains where team_id = $1', [team])
  await client.query(HISTORY, [team, rows[0]?.id])
  await client.query(CONTACTS, [team, topic, AUDIENCE, AUDIENCE + OTHERS])
  await client.query(WHATSAPP, [team])
  await client.query(WEBHOOKS, [team, endpoint])
  await client.query('analyze')
  const old = await client.query<{ id: string }>(
    'select id from email_states where team_id = $1 order by id limit 1',
    [team],
  )
  const draft = {
    ...{ name: 'News', template_id, from: 'hello@example.com', subject: 'News for {{name}}' },
    topic_ids: [topic],
  }
  return { team, key, login: new URL(url).pathname, old: old.rows[0]?.id ?? '', draft }
}
