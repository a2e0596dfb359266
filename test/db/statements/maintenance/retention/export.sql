-- emailsToShow
select id, created_at, from_address as
from, to_emails, first_cc, first_bcc, scheduled_at, expires_at, status, broadcast_id, template_id,
  template_version_id, subject, html, body_text as text, variables, headers, reply_to, tags, idempotency_key,
  attachments, internal
from emails
where team_id = $1
  and id = any($2::uuid[])
order by id

-- eventsToShow
select email_id, kind, occurred_at, recipient, detail, lower(coalesce(v.recipient,
  '') || ' ' || v.detail) ~ $1 as names
from email_events v
where team_id = $2
  and email_id = any($3::uuid[])
order by email_id, occurred_at, event_key

-- reportsToShow
with stretch as (
  select id, provider, received_at, state, team_ids, body
  from reports
  where id > $1
  order by id
  limit $2
)
select (
  select max(id::text)
  from stretch
) as last, coalesce((
  select json_agg(json_build_object('id', id, 'provider', provider, 'received_at',
    to_char(received_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'bytes',
    length(body)) order by id)
  from stretch
  where state <> 'pending'
    and team_ids = $3::uuid[]
    and lower(encode(body, 'escape')) ~ $4
), '[]') as found

-- skipsToShow
select broadcast_id, contact_id, email, reason, detail, at
from broadcast_skips
where team_id = $1
  and lower(email) = any($2::text[])
order by at, broadcast_id

-- webhooksAboutDeleted
with stretch as materialized (
  select *
  from webhook_messages
  where team_id = $1
    and id > $2
  order by id
  limit $3
)
select (
  select max(id::text)
  from stretch
) as last, coalesce((
  select json_agg(json_build_object('subject_id', subject_id, 'event_id', event_id, 'endpoint_id',
    endpoint_id, 'type', type, 'status', status, 'created_at', to_char(created_at at time zone 'UTC',
    'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'recipient', body::json -> 'data' ->> 'recipient') order by id)
  from stretch w
  where split_part(w.type, '.', 1) in ('email', 'contact')
    and lower(w.body) ~ $4
    and lower(concat_ws(' ', (w.body::json -> 'data') ->> $5, (w.body::json -> 'data') ->> $6,
      (w.body::json -> 'data') ->> $7, (w.body::json -> 'data') ->> $8, (w.body::json -> 'data') ->> $9,
      (w.body::json -> 'data') ->> $10)) ~ $11
    and not exists (
    select
    from email_states s
    where s.team_id = w.team_id
      and s.id = w.subject_id
  )
    and not exists (
    select
    from contacts c
    where c.team_id = w.team_id
      and c.id = w.subject_id
  )
), '[]') as found

-- webhooksToShow
select subject_id, event_id, endpoint_id, type, status, created_at,
  body::json -> 'data' ->> 'recipient' as recipient
from webhook_messages
where team_id = $1
  and subject_id = any($2::uuid[])
order by id
