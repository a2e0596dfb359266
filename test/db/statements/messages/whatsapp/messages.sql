-- insertRequests
with charged as (
  select
), asked as (
  insert into whatsapp_requests (team_id, id, template_id, parameters, idempotency_key, http_request_id,
    created_at)
  select *
  from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::json[], $5::text[], $6::text[],
    $7::timestamptz[]) as request (team_id, id, template_id, parameters, idempotency_key, http_request_id,
    created_at)
), stored as (
  insert into whatsapp_messages (team_id, id, request_id, position, recipient, country, phone_number_id,
    parts, created_at, scheduled_at, expires_at, due_at, status)
  select team_id, id, request_id, position, recipient, country, phone_number_id, parts, created_at,
    scheduled_at, expires_at, due_at, 'queued'
  from unnest($8::uuid[], $9::uuid[], $10::uuid[], $11::int2[], $12::text[], $13::text[], $14::text[],
    $15::bool[], $16::timestamptz[], $17::timestamptz[], $18::timestamptz[],
    $19::timestamptz[]) as message (team_id, id, request_id, position, recipient, country, phone_number_id,
    parts, created_at, scheduled_at, expires_at, due_at)
), job as (
  select
)
select 1 / (count(*) = $20)::int
from job

-- messageById
select m.team_id, m.id, m.request_id, r.template_id, m.recipient, m.country, case when (m.was_sent
  and m.status = 'queued') then 'sent' else m.status end as status, r.parameters, r.idempotency_key,
  r.http_request_id, m.created_at, m.requeued_at, m.accepted_at, m.provider_message_id, m.wa_id, m.pricing,
  m.scheduled_at, m.expires_at, m.due_at
from whatsapp_messages m
cross join lateral (
  select *
  from whatsapp_requests
  where team_id = m.team_id
    and id = m.request_id offset 0
) r
where m.team_id = $1
  and m.id = $2

-- messagesOfNumbers
select m.team_id, m.id as message_id, m.recipient, coalesce(m.tries_from, m.created_at) as since,
  r.http_request_id, r.parameters, r.template_id, t.name, t.language, t.slots, t.url_buttons, t.parts,
  t.status as template_status, t.category, coalesce(t.account_id, (
  select account_id
  from whatsapp_numbers
  where name = 'default'
)) is not distinct from coalesce(n.account_id, (
  select account_id
  from whatsapp_numbers
  where name = 'default'
)) as own_template, m.expires_at, $1::boolean as test, past.* , m.phone_number_id, n.name as number_name,
  n.access_token, n.messages_per_second, n.paused_at is not null as paused
from unnest($2::uuid[], $3::uuid[]) as ref (team_id, message_id)
cross join lateral (
  select *
  from whatsapp_messages
  where team_id = ref.team_id
    and id = ref.message_id
    and unfinished
    and phone_number_id is not null offset 0
) m
cross join lateral (
  select *
  from whatsapp_requests
  where team_id = m.team_id
    and id = m.request_id offset 0
) r
cross join lateral (
  select
  from teams s
  where s.id = m.team_id
    and s.suspended_at is null
    and s.test = $4 offset 0
) team
cross join lateral (
  select *
  from whatsapp_templates
  where team_id = m.team_id
    and id = r.template_id offset 0
) t
left join whatsapp_numbers n on n.phone_number_id = m.phone_number_id
  and n.name <> 'default'
cross join lateral (
  select count(*) filter (where kind = 'deferred') as deferrals,
    count(*) filter (where kind = 'unknown') as unknowns, min(occurred_at) as tried_since
  from whatsapp_events
  where team_id = m.team_id
    and message_id = m.id
    and kind in ('deferred', 'unknown')
    and occurred_at >= coalesce(m.tries_from, m.created_at)
) past

-- messagesOfRequest
select id, recipient, case when (m.was_sent and m.status = 'queued') then 'sent' else m.status end as status,
  scheduled_at, expires_at
from whatsapp_messages m
where team_id = $1
  and request_id = $2
order by position

-- messagesToDeliver
select m.team_id, m.id as message_id, m.recipient, coalesce(m.tries_from, m.created_at) as since,
  r.http_request_id, r.parameters, r.template_id, t.name, t.language, t.slots, t.url_buttons, t.parts,
  t.status as template_status, t.category, coalesce(t.account_id, (
  select account_id
  from whatsapp_numbers
  where name = 'default'
)) is not distinct from coalesce(n.account_id, (
  select account_id
  from whatsapp_numbers
  where name = 'default'
)) as own_template, m.expires_at, $1::boolean as test, past.*
from unnest($2::uuid[], $3::uuid[]) as ref (team_id, message_id)
cross join lateral (
  select *
  from whatsapp_messages
  where team_id = ref.team_id
    and id = ref.message_id
    and unfinished
    and phone_number_id is null offset 0
) m
cross join lateral (
  select *
  from whatsapp_requests
  where team_id = m.team_id
    and id = m.request_id offset 0
) r
cross join lateral (
  select
  from teams s
  where s.id = m.team_id
    and s.suspended_at is null
    and s.test = $4 offset 0
) team
cross join lateral (
  select *
  from whatsapp_templates
  where team_id = m.team_id
    and id = r.template_id offset 0
) t
left join whatsapp_numbers n on n.phone_number_id = m.phone_number_id
  and n.name <> 'default'
cross join lateral (
  select count(*) filter (where kind = 'deferred') as deferrals,
    count(*) filter (where kind = 'unknown') as unknowns, min(occurred_at) as tried_since
  from whatsapp_events
  where team_id = m.team_id
    and message_id = m.id
    and kind in ('deferred', 'unknown')
    and occurred_at >= coalesce(m.tries_from, m.created_at)
) past

-- requestsByKeys
select r.team_id, r.idempotency_key, r.id as request_id, m.id as first_id
from unnest($1::uuid[], $2::text[]) as w (team_id, key)
join whatsapp_requests r on r.team_id = w.team_id
  and r.idempotency_key = w.key
cross join lateral (
  select id
  from whatsapp_messages
  where team_id = r.team_id
    and request_id = r.id
  order by position
  limit 1
) m
