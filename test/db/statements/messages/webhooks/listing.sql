-- readAttempts
select m.event_id, m.type, a.occurred_at as at, a.status, a.ms, a.detail as response
from (
  select *
  from webhook_events
  where team_id = $1
    and endpoint_id = $2
    and kind = 'attempt'
  order by occurred_at desc
  limit $3
) a
join webhook_messages m on m.team_id = a.team_id
  and m.id = a.message_id
order by a.occurred_at desc, a.event_key desc

-- readHistory
select kind, occurred_at, detail, status, ms
from webhook_events
where team_id = $1
  and message_id = $2
order by occurred_at, event_key

-- webhookByEvent
select id, event_id, type, status, created_at, endpoint_id, body, requeued_at
from webhook_messages
where team_id = $1
  and endpoint_id = $2
  and event_id = $3
  and id > $4
  and id < $5
order by id
limit 1

-- webhooksOf
select id, event_id, type, status, created_at
from webhook_messages
where team_id = $1
  and endpoint_id = $2
  and true
  and true
order by id desc
limit $3

-- webhooksOfTeam
with newest as materialized (
  select id, event_id, type, status, unfinished, created_at, endpoint_id
  from webhook_messages
  where team_id = $1
    and true
  order by id desc
  limit $2
), found as (
  select id, event_id, type, status, created_at, endpoint_id
  from newest
  where true
  order by id desc
  limit $3
)
select (
  select coalesce(json_agg(found order by id desc), '[]')
  from found
) as rows, case when (
  select count(*) from newest
) = $4 and (
  select count(*) from found
) < $5 then (
  select min(id::text) from newest
) end as reached
