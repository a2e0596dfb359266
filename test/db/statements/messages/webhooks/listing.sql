-- countReplayable
select count(*) as count
from (
  select
  from webhook_messages
  where (team_id = $1 and endpoint_id = $2 and status = 'failed' and id >= $3
    and created_at >= to_timestamp($4) and id <= $5 and created_at <= to_timestamp($6) and type = $7)
  limit $8
) found

-- endpointOfWebhook
select endpoint_id
from webhook_messages
where team_id = $1
  and id = $2

-- readAttempts
select m.id as message_id, m.event_id, m.type, m.status as message_status, a.occurred_at as at, a.status,
  a.ms, a.detail as response
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

-- readOutcomes
select message_id as id,
  (array_agg(status order by occurred_at desc) filter (where kind = 'attempt'))[1] as status,
  bool_or(kind = 'attempt') as is_attempted,
  (array_agg(detail order by occurred_at desc))[1] = $1 as is_disabled
from webhook_events
where team_id = $2
  and message_id = any($3::uuid[])
group by message_id

-- replayable
select id
from webhook_messages m
where (team_id = $1 and endpoint_id = $2 and status = 'failed' and id >= $3 and created_at >= to_timestamp($4)
  and id <= $5 and created_at <= to_timestamp($6) and type = $7)
  and id > $8
  and (
  select id < $9::bigint
    and id <> all($10::int8[])
  from (
    select newest - ((newest - m.xmin::text::bigint) & 4294967295) as id
    from (
      select greatest(pg_snapshot_xmax(pg_current_snapshot()),
        pg_current_xact_id_if_assigned())::text::bigint as newest
    ) now
  ) version
)
order by id
limit $11
for no key update

-- subjectsOfAddress
select id
from contacts
where team_id = $1
  and identity = any($2::text[])
union all (
  select id
  from accepted_emails
  where team_id = $3
    and not internal
    and recipient_identities(to_emails) && $4::text[]
    and num_nonnulls(to_emails) = 1
  order by id desc
  limit $5
)

-- webhookByEvent
select m.id, m.event_id, m.type, m.status, m.created_at, m.subject_id, m.endpoint_id,
  coalesce(m.body::json #>> '{data,recipient}', m.body::json #>> '{data,to,0}',
  m.body::json #>> '{data,email}', case json_typeof(m.body::json #> '{data,to}')
  when 'string' then m.body::json #>> '{data,to}' end) as recipient, body, requeued_at
from webhook_messages m
where team_id = $1
  and endpoint_id = $2
  and event_id = $3
  and id > $4
  and id < $5
order by id
limit 1

-- webhooksAbout
select m.id, m.event_id, m.type, m.status, m.created_at, m.subject_id, m.endpoint_id,
  coalesce(m.body::json #>> '{data,recipient}', m.body::json #>> '{data,to,0}',
  m.body::json #>> '{data,email}', case json_typeof(m.body::json #> '{data,to}')
  when 'string' then m.body::json #>> '{data,to}' end) as recipient
from (
  select *
  from webhook_messages
  where team_id = $1
    and subject_id = any($2::uuid[]) offset 0
) m
where true
  and id < $3
  and endpoint_id = $4
order by id desc
limit $5

-- webhooksOf
select m.id, m.event_id, m.type, m.status, m.created_at, m.subject_id, m.endpoint_id,
  coalesce(m.body::json #>> '{data,recipient}', m.body::json #>> '{data,to,0}',
  m.body::json #>> '{data,email}', case json_typeof(m.body::json #> '{data,to}')
  when 'string' then m.body::json #>> '{data,to}' end) as recipient
from webhook_messages m
where team_id = $1
  and endpoint_id = $2
  and type = $3
  and id < $4
order by id desc
limit $5

-- webhooksOfPart
with newest as materialized (
  select id, type, status, unfinished
  from webhook_messages
  where team_id = $1
    and true
  order by id desc
  limit $2
), found as (
  select id
  from newest
  where type = $3
  order by id desc
  limit $4
), read as (
  select m.id, m.event_id, m.type, m.status, m.created_at, m.subject_id, m.endpoint_id,
    coalesce(m.body::json #>> '{data,recipient}', m.body::json #>> '{data,to,0}',
    m.body::json #>> '{data,email}', case json_typeof(m.body::json #> '{data,to}')
    when 'string' then m.body::json #>> '{data,to}' end) as recipient
  from found
  join webhook_messages m on m.team_id = $5
    and m.id = found.id
)
select (
  select coalesce(json_agg(read order by id desc), '[]')
  from read
) as rows, case when (
  select count(*) from newest
) = $6 and (
  select count(*) from found
) < $7 then (
  select min(id::text) from newest
) end as reached

-- webhooksToRequeue
select id
from webhook_messages
where team_id = $1
  and (unfinished or $2 and status = 'failed')
  and type = $3
  and endpoint_id = $4
  and id > $5
  and id <= $6
  and endpoint_id in (
  select id
  from webhook_endpoints
  where team_id = $7
    and state = 'enabled'
)
order by id
limit $8
