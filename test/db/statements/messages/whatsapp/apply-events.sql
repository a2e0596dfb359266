-- lockMessages
select m.team_id, m.id as message_id, m.status, m.accepted_at is null as untaken, m.provider_message_id,
  m.given_back, m.recipient, m.phone_number_id as own_number, m.parts, coalesce(m.tries_from,
  m.created_at) as since, coalesce(m.phone_number_id, (
  select phone_number_id
  from whatsapp_numbers
  where name = 'default'
)) as number
from (
  select distinct team_id as ref_team, message_id as ref_id
  from unnest($1::uuid[], $2::uuid[]) as ref (team_id, message_id)
  order by 1, 2
) ref
cross join lateral (
  select *
  from whatsapp_messages
  where team_id = ref_team
    and id = ref_id
  for no key update
) m

-- markSent
update whatsapp_messages
set was_sent = true
where (team_id, id) in (
  select *
  from unnest($1::uuid[], $2::uuid[]) as ref (team_id, message_id)
)
  and not was_sent

-- messagesByProviderIds
select team_id, id as message_id, provider_message_id
from whatsapp_messages
where provider_message_id = any($1::text[])

-- ownNumbers
select name, phone_number_id
from whatsapp_numbers
where phone_number_id = any($1::text[])
  or name = 'default'

-- raiseStatuses
with rise as materialized (
  select r.*
  from unnest($1::uuid[], $2::uuid[], $3::text[]) as r (team_id, message_id, status)
  join lateral (
    select id, status
    from whatsapp_messages
    where team_id = r.team_id
      and id = r.message_id offset 0
  ) m on m.id = r.message_id
  where array_position($4::text[], r.status) > array_position($5::text[], m.status)
)
update whatsapp_messages m
set status = r.status, was_sent = m.was_sent
  and r.status = 'sent'
from rise r
where m.team_id = r.team_id
  and m.id = r.message_id

-- readDeferrals
select m.team_id, m.id as message_id, r.template_id, past.*
from unnest($1::uuid[], $2::uuid[]) as ref (team_id, message_id)
cross join lateral (
  select team_id, id, request_id, coalesce(tries_from, created_at) as since
  from whatsapp_messages
  where team_id = ref.team_id
    and id = ref.message_id offset 0
) m
cross join lateral (
  select template_id
  from whatsapp_requests
  where team_id = m.team_id
    and id = m.request_id offset 0
) r
cross join lateral (
  select count(*) filter (where kind = 'deferred') as deferrals, min(occurred_at) as tried_since
  from whatsapp_events
  where team_id = m.team_id
    and message_id = m.id
    and kind in ('deferred', 'unknown')
    and occurred_at >= m.since
) past

-- recordAcceptances
with taken as materialized (
  select a.*
  from unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $4::text[], $5::text[]) as a (team_id, message_id,
    accepted_at, provider_message_id, wa_id)
  join lateral (
    select id
    from whatsapp_messages
    where team_id = a.team_id
      and id = a.message_id offset 0
  ) m on m.id = a.message_id
)
update whatsapp_messages m
set accepted_at = coalesce(m.accepted_at, a.accepted_at),
  provider_message_id = coalesce(m.provider_message_id, a.provider_message_id), wa_id = coalesce(a.wa_id,
  m.wa_id)
from taken a
where m.team_id = a.team_id
  and m.id = a.message_id

-- recordPricing
with latest as (
  select distinct on (p.team_id, p.message_id) p.*
  from unnest($1::uuid[], $2::uuid[], $3::json[], $4::timestamptz[]) as p (team_id, message_id, pricing,
    occurred_at)
  order by p.team_id, p.message_id, p.occurred_at desc, p.pricing::text
)
update whatsapp_messages m
set pricing = l.pricing, pricing_at = l.occurred_at
from latest l
where m.team_id = l.team_id
  and m.id = l.message_id
  and (m.pricing_at is null or m.pricing_at < l.occurred_at or m.pricing_at = l.occurred_at
    and m.pricing::text > l.pricing::text)

-- releaseMessages
update whatsapp_messages m
set status = 'queued', was_sent = m.was_sent
  or m.status = 'sent', accepted_at = null, provider_message_id = null, given_back = case
    when g.provider_message_id is null then m.given_back else array_append(m.given_back,
    g.provider_message_id) end, requeued_at = to_timestamp($1), requeues = m.requeues + 1
from unnest($2::uuid[], $3::uuid[], $4::text[]) as g (team_id, message_id, provider_message_id)
where m.team_id = g.team_id
  and m.id = g.message_id
  and m.status in ('queued', 'sent')
