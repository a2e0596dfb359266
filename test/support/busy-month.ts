/** A month of contacts, emails and usage whose numbers agree on all pages. */
import { sql } from 'slonik'
import { saveTemplate } from '../../db/content/templates/save.ts'
import { insertEmailRows } from './email-rows.ts'
import type { Service, TestTeam } from './service.ts'
import { uuidAt } from './uuid-sql.ts'

/** The number of contacts with the topic Product news. */
export const BUSY_AUDIENCE = 1172

/** Only the first contacts get single emails. The others may bounce in a broadcast. */
const PARCEL_READERS = 1_000

const PROVIDER_ID = sql.fragment`gen_random_uuid() || '@relay.example.com'`

const NO_MAILBOX = '550 5.1.1 No such user here'
const FULL = '552 5.2.2 The mailbox is full'
const REFUSED = '550 5.7.1 Message rejected due to local policy'

/** Stores missing responses of bounced emails, and suppresses addresses without a mailbox. */
async function storeResponses({ database }: Service, { id }: TestTeam): Promise<void> {
  await database.query(sql.unsafe`
    insert into email_events (team_id, email_id, event_key, kind, occurred_at, detail)
    select team_id, id, uuid_send(gen_random_uuid()), 'bounced', created_at + interval '3 seconds',
      (${sql.array([NO_MAILBOX, NO_MAILBOX, NO_MAILBOX, FULL, REFUSED], 'text')})[1 + row_number() over () % 5]
    from email_states s where team_id = ${id} and status = 'bounced' and not exists (
      select from email_events e where e.team_id = s.team_id and e.email_id = s.id and e.kind = 'bounced')`)
  await database.query(sql.unsafe`
    insert into suppressed_addresses (
      team_id, identity, email, cause, since, email_id, response, bounced_at, bounce_response)
    select distinct on (a.to_emails[1]) a.team_id, a.to_emails[1], a.to_emails[1], 'bounce', e.occurred_at, a.id, e.detail,
      e.occurred_at, e.detail
    from email_events e join accepted_emails a on a.team_id = e.team_id and a.id = e.email_id
    where e.team_id = ${id} and e.kind = 'bounced' and e.detail = ${NO_MAILBOX}
    order by a.to_emails[1], e.occurred_at
    on conflict do nothing`)
  await database.query(sql.unsafe`
    update contacts c set status = 'bounced', suppression = 'bounced', suppression_copied = 'bounced',
      status_before = 'subscribed'
    from suppressed_addresses s
    where c.team_id = ${id} and s.team_id = c.team_id and s.identity = c.identity and c.status = 'subscribed'`)
}

/** Counts the sent emails of each day, for the rates of the last seven days. */
const storeSending = ({ database }: Service, { id }: TestTeam) =>
  database.query(sql.unsafe`
    insert into daily_figures (team_id, channel, day, status, count)
    select ${id}, 'sending', (s.created_at at time zone 'UTC')::date, what.status, count(*)
    from email_states s
    left join lateral (
      select detail from email_events e where e.team_id = s.team_id and e.email_id = s.id and e.kind = 'bounced' limit 1
    ) bounce on true
    cross join lateral (values ('sent', true), ('hard_bounced', bounce.detail = ${NO_MAILBOX}),
      ('complained', s.status = 'complained')) what (status, is_so)
    where s.team_id = ${id} and s.status <> 'queued' and what.is_so
    group by 3, 4
    on conflict (team_id, channel, day, status) do update set count = excluded.count`)

/** Stores the emails of a broadcast to the first subscribed contacts of Product news. @param counts emails by status */
export async function storeBroadcastEmails(
  service: Service,
  team: TestTeam,
  broadcast: string,
  counts: Readonly<Record<string, number>>,
): Promise<void> {
  // Bounces come first. These contacts get no parcels, so nothing follows a hard bounce.
  const ordered = Object.entries(counts).sort(
    ([one], [other]) => Number(other === 'bounced') - Number(one === 'bounced'),
  )
  const statuses = ordered.flatMap(([status, count]) => Array<string>(count).fill(status))
  const at = sql.fragment`least(b.started_at + interval '5 minutes', now() - interval '1 minute') + n * interval '20 ms'`
  await insertEmailRows(
    service,
    sql.fragment`
      select b.team_id, ${uuidAt(at)} as id, ${team.domain_id} as domain_id, b.id as broadcast_id, c.id as contact_id,
        b.from_address, array[c.email] as to_emails, b.subject, b.template_id, b.template_version_id,
        '[]'::json as tags, '' as reply_to, s.status, ${at} as created_at, ${PROVIDER_ID} as provider_message_id
      from broadcasts b
      cross join unnest(${sql.array(statuses, 'text')}) with ordinality as s (status, n)
      join (
        select id, email, row_number() over (order by created_at, email) as n from contacts
        where team_id = ${team.id} and status = 'subscribed' and topic_ids && array(
          select id from topics where team_id = ${team.id} and name = 'Product news')
      ) c using (n)
      where b.team_id = ${team.id} and b.id = ${broadcast}`,
  )
  await storeResponses(service, team)
  await storeSending(service, team)
}

/** Skips the last contacts of Product news. @param reasons the reason of each */
export const storeSkips = (
  { database }: Service,
  { id }: TestTeam,
  broadcast: string,
  reasons: readonly string[],
) =>
  database.query(sql.unsafe`
    insert into broadcast_skips (team_id, broadcast_id, contact_id, email, reason, detail, at)
    select team_id, ${broadcast}, c.id, email, reason, case reason when 'variables' then 'no value for name' else '' end,
      now() - interval '11 minutes'
    from unnest(${sql.array([...reasons], 'text')}) with ordinality as r (reason, n)
    join (select *, row_number() over (order by created_at desc, email) as n from contacts
      where team_id = ${id} and email like 'reader%') c using (n)`)

const OFFER = `<div style="font-family:sans-serif;max-width:560px;margin:auto;padding:24px">
  <h1 style="font-size:22px">Hello {{name}},</h1><p>everything in our shop costs twenty per cent less until Sunday.</p>
  <p><a href="https://example.com/shop" style="background:#14532d;color:#fff;padding:10px 18px">See the offers</a></p>
  <p style="font-size:13px;color:#555">Delivery is free from 40 euros. <a href="{{unsubscribe_url}}">Unsubscribe</a></p></div>`

/**
 * Stores contacts of the topic, a template for broadcasts and a month of single emails.
 * @returns the ID of the template
 */
export async function aBusyMonth(service: Service, team: TestTeam): Promise<string> {
  const { database, deps } = service
  await database.query(sql.unsafe`
    update topics set created_at = now() - interval '55 days' where team_id = ${team.id} and name = 'Product news'`)
  await database.query(sql.unsafe`
    insert into contacts (team_id, id, email, identity, status, properties, topic_ids, created_at, updated_at)
    select ${team.id}, gen_random_uuid(), address, address, 'subscribed',
      json_build_object('name', 'reader ' || n, 'city', (array['Graz', 'Linz', 'Wien'])[1 + n % 3])::jsonb,
      array(select id from topics where team_id = ${team.id} and name = 'Product news'),
      now() - interval '45 days' - n * interval '17 minutes', now() - interval '45 days'
    from generate_series(1, ${BUSY_AUDIENCE}) n, lateral (select 'reader' || n || '@example.net' as address) a`)
  const at = sql.fragment`now() - interval '3 hours' - n * interval '4 minutes 15 seconds'`
  const status = sql.fragment`case when n % 18 = 7 then 'bounced'
    when n % 40 = 3 then 'sent' when n % 3 = 0 then 'opened' when n % 7 = 0 then 'clicked' else 'delivered' end`
  await insertEmailRows(
    service,
    sql.fragment`
      select ${team.id} as team_id, ${uuidAt(at)} as id, ${team.domain_id} as domain_id,
        'Northwind <hello@example.com>' as from_address, array[
          case when n % 18 = 7 then 'former' || n else 'reader' || n % ${PARCEL_READERS} end || '@example.net'] as to_emails,
        'Your parcel is on its way' as subject, '<p>Hello</p>' as html, '["parcel"]'::json as tags, '' as reply_to,
        ${status} as status, ${at} as created_at, ${PROVIDER_ID} as provider_message_id
      from generate_series(1, 10000) n where n % 9 < 6 + 3 * sin(n / 340.0)`,
  )
  await storeResponses(service, team)
  await storeSending(service, team)
  const template = await database.transaction((tx) =>
    saveTemplate({ tx, now: deps.clock(), actor: 'ana@example.com' }, team.id, {
      name: 'Seasonal offers',
      html: OFFER,
      text: 'Hello {{name}}, everything costs twenty per cent less until Sunday: https://example.com/shop',
    }),
  )
  return template.id
}

/** Counts the stored emails and contacts as used. */
export const storeUsage = ({ database }: Service, { id }: TestTeam) =>
  database.query(sql.unsafe`
    update allowances a set
      emails_used = (select count(*) from email_states e where e.team_id = a.team_id and created_at >= a.period_start),
      contacts_used = (select count(*) from contacts c where c.team_id = a.team_id)
    where team_id = ${id}`)
