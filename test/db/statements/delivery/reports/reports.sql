-- endReports
update reports r
set state = s.state, reason = s.reason, team_ids = array(
  select json_array_elements_text(s.team_ids)::uuid
  order by 1
)
from unnest($1::uuid[], $2::text[], $3::text[], $4::json[]) as s (id, state, reason, team_ids)
where r.id = s.id
  and r.state = 'pending'

-- hasReports
select
from reports
where provider = $1

-- insertReports
insert into reports (id, provider, event_key, body, received_at, retry_until)
select id, provider, event_key, substring($1::bytea from begin for bytes), received_at, retry_until
from unnest($2::uuid[], $3::text[], $4::text[], $5::int4[], $6::int4[], $7::timestamptz[],
  $8::timestamptz[]) as r (id, provider, event_key, begin, bytes, received_at, retry_until)
order by provider, event_key, id
on conflict (provider, event_key) do nothing
returning id

-- lastReports
select p.provider, case when (
  select r.provider from reports r where r.provider = p.provider order by r.event_key limit 1
) is not null then (
  select received_at from reports r where r.provider = p.provider order by r.id desc limit 1
) end as last_at
from unnest($1::text[]) as p (provider)
order by 1

-- lostReports
select id
from reports r
where state = 'pending'
  and received_at < to_timestamp($1)
  and not exists (
  select
  from pgboss.job j
  where j.name = $2
    and j.id = r.id
    and j.state <= 'active' offset 0
)
  and not exists (
  select
  from pgboss.job d
  where d.name = $3
    and d.source_id = r.id
    and d.state <= 'active' offset 0
)
order by received_at
limit $4

-- parkedByReason
select coalesce(reason, '') as reason, count(*) as reports
from reports
where state = 'parked'
group by 1
order by 2 desc, 1
limit 50

-- parkedReports
select id, provider, event_key, received_at, state, reason, octet_length(body) as bytes
from reports
where state = 'parked'
order by received_at desc, id desc
limit $1

-- pendingReports
select id, provider, octet_length(body) as bytes, received_at, retry_until, case
  when octet_length(body) <= $1 then body end as body
from reports
where id = any($2::uuid[])
  and state = 'pending'
order by id

-- reportBodies
select id, body
from reports
where id = any($1::uuid[])

-- reportById
select id, provider, event_key, received_at, state, reason, octet_length(body) as bytes
from reports
where id = $1
