-- failSilenced
with failed as (
  update webhook_messages m
  set status = 'failed'
  where (m.team_id, m.id) in (
    select *
    from unnest($1::uuid[], $2::uuid[]) as ref (team_id, id)
  )
    and m.unfinished
    and not exists (
    select
    from webhook_endpoints w
    where w.team_id = m.team_id
      and w.id = m.endpoint_id
      and w.state = 'enabled'
  )
  returning m.team_id, m.id
)
insert into webhook_events (team_id, message_id, event_key, kind, occurred_at, detail)
select team_id, id, uuid_send(gen_random_uuid()), 'gave_up', now(), $3
from failed

-- failWaiting
with failed as (
  update webhook_messages
  set status = 'failed'
  where team_id = $1
    and endpoint_id = $2
    and unfinished
  returning team_id, id
), noted as (
  insert into webhook_events (team_id, message_id, event_key, kind, occurred_at, detail)
  select team_id, id, uuid_send(gen_random_uuid()), 'gave_up', now(), $3
  from failed
)
select *
from failed

-- lockUnchangedWebhooks
with asked as materialized (
  select *
  from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[]) as a (team_id, id, endpoint_id, url)
), held as materialized (
  select team_id, id, url
  from webhook_endpoints
  where (team_id, id) in (
    select team_id, endpoint_id
    from asked
  )
  order by team_id, id
  for no key update
)
select m.id
from asked a
join held w on w.team_id = a.team_id
  and w.id = a.endpoint_id
  and w.url = a.url
join webhook_messages m on m.team_id = a.team_id
  and m.id = a.id
order by m.team_id, m.id for key share of m

-- restartWebhooks
update webhook_messages
set status = 'queued', requeued_at = to_timestamp($1), tries_from = to_timestamp($2)
where (team_id, id) in (
  select *
  from unnest($3::uuid[], $4::uuid[]) as ref (team_id, id)
)

-- storeRound
with held as materialized (
  select w.team_id, w.id, n.success_at, n.failure_at
  from unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $4::timestamptz[]) as n (team_id, id, success_at,
    failure_at)
  join webhook_endpoints w on w.team_id = n.team_id
    and w.id = n.id
  order by w.team_id, w.id
  for no key update of w
), noted as (
  update webhook_endpoints w
  set last_success_at = greatest(w.last_success_at, h.success_at), failing_since = case
    when h.success_at is not null then h.failure_at else coalesce(w.failing_since, h.failure_at) end
  from held h
  where w.team_id = h.team_id
    and w.id = h.id
  returning w.team_id, w.id, w.failing_since, w.state = 'enabled' as enabled
), attempt as materialized (
  select *
  from unnest($5::uuid[], $6::uuid[], $7::uuid[], $8::uuid[], $9::timestamptz[], $10::int4[], $11::int4[],
    $12::text[], $13::bool[]) as a (team_id, endpoint_id, id, message_id, at, status, ms, response, counts)
), there as materialized (-- What follows reads its rows from here,
  changed or not: a row that this statement has changed cannot be locked. select team_id,
  id from webhook_messages where (team_id, id) in (
  select team_id, message_id
  from attempt
) order by team_id, id for key share), tried as (
  insert into webhook_events (team_id, endpoint_id, event_key, message_id, occurred_at, status, ms, detail,
    counts, kind)
  select a.team_id, endpoint_id, uuid_send(a.id), message_id, at, status, ms, response, counts, 'attempt'
  from attempt a
  join there m on m.team_id = a.team_id
    and m.id = a.message_id
  on conflict do nothing
), ended as (
  update webhook_messages m
  set status = e.status
  from unnest($14::uuid[], $15::uuid[], $16::text[]) as e (team_id, id, status)
  join there t on t.team_id = e.team_id
    and t.id = e.id
  where m.team_id = t.team_id
    and m.id = t.id
    and m.unfinished
)
select *
from noted

-- webhooksToDeliver
select m.team_id, m.id, m.endpoint_id, m.event_id, m.type, m.body, coalesce(m.tries_from,
  m.created_at) as since, w.url, w.secret, case
  when w.previous_until > now() then w.previous_secret end as previous_secret, past.*
from unnest($1::uuid[], $2::uuid[]) as ref (team_id, id)
cross join lateral (
  select *
  from webhook_messages
  where team_id = ref.team_id
    and id = ref.id
    and unfinished offset 0
) m
cross join lateral (
  select *
  from webhook_endpoints
  where team_id = m.team_id
    and id = m.endpoint_id
    and state = 'enabled' offset 0
) w
cross join lateral (
  select count(*) as tries, coalesce(array_agg(a.status) filter (where a.status is not null),
    '{}') as statuses
  from webhook_events a
  where a.team_id = m.team_id
    and a.message_id = m.id
    and a.counts
    and a.occurred_at >= coalesce(m.tries_from, m.created_at)
) past
where not exists (
  select
  from teams s
  where s.id = m.team_id
    and s.suspended_at is not null
)
