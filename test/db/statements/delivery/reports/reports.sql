-- countParked
select count(*)
from (
  select
  from reports
  where state = 'parked'
  limit $1
) counted

-- deleteOldReports
with old as (
  select id
  from reports
  where state <> 'pending'
    and id < $1
  limit $2
), gone as (
  delete from reports
  where id in (
    select id
    from old
  )
  returning 1
)
select count(*) as count
from gone

-- deleteParkedReport
delete from reports
where id = $1
  and state = 'parked'
returning id, provider, event_key, received_at, state, reason, octet_length(body) as bytes

-- deleteParkedReports
with gone as (
  delete from reports
  where id in (
    select id
    from reports
    where state = 'parked'
      and id = any($1::uuid[])
      and provider = $2
      and strpos(lower(reason), lower($3)) > 0
      and received_at < to_timestamp($4)
      and (
      select id < $5::bigint
        and id <> all($6::int8[])
      from (
        select newest - ((newest - reports.xmin::text::bigint) & 4294967295) as id
        from (
          select greatest(pg_snapshot_xmax(pg_current_snapshot()),
            pg_current_xact_id_if_assigned())::text::bigint as newest
        ) now
      ) version
    )
    order by id
    limit $7
    for update
  )
  returning 1
)
select count(*) as count
from gone

-- deleteReports
delete from reports
where id = any($1::uuid[])

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
  and id = any($1::uuid[])
  and provider = $2
  and strpos(lower(reason), lower($3)) > 0
  and received_at < to_timestamp($4)
  and (
  select id < $5::bigint
    and id <> all($6::int8[])
  from (
    select newest - ((newest - reports.xmin::text::bigint) & 4294967295) as id
    from (
      select greatest(pg_snapshot_xmax(pg_current_snapshot()),
        pg_current_xact_id_if_assigned())::text::bigint as newest
    ) now
  ) version
)
group by 1
order by 2 desc, 1
limit 50

-- parkedReports
select id, provider, event_key, received_at, state, reason, octet_length(body) as bytes
from reports
where state = 'parked'
  and (received_at, id) < (
  select received_at, id
  from reports
  where id = $1
)
order by received_at desc, id desc
limit $2

-- pendingReports
select id, provider, octet_length(body) as bytes, received_at, retry_until, case
  when octet_length(body) <= $1 then body end as body
from reports
where id = any($2::uuid[])
  and state = 'pending'
order by id

-- providersOfReports
select id, provider
from reports
where id = any($1::uuid[])

-- reopenReport
update reports
set state = 'pending', reason = null, retry_until = to_timestamp($1)
where id = $2
returning id, provider, event_key, received_at, state, reason, octet_length(body) as bytes

-- reopenReports
update reports
set state = 'pending', reason = null, retry_until = to_timestamp($1)
where id in (
  select id
  from reports
  where state = 'parked'
    and id = any($2::uuid[])
    and provider = $3
    and strpos(lower(reason), lower($4)) > 0
    and received_at < to_timestamp($5)
    and (
    select id < $6::bigint
      and id <> all($7::int8[])
    from (
      select newest - ((newest - reports.xmin::text::bigint) & 4294967295) as id
      from (
        select greatest(pg_snapshot_xmax(pg_current_snapshot()),
          pg_current_xact_id_if_assigned())::text::bigint as newest
      ) now
    ) version
  )
  order by id
  limit $8
  for update
)
returning id

-- reportBodies
select id, body
from reports
where id = any($1::uuid[])

-- reportById
select id, provider, event_key, received_at, state, reason, octet_length(body) as bytes
from reports
where id = $1

-- reportHeads
select id, substring(body for $1::int) as head
from reports
where id = any($2::uuid[])

-- reportsByState
select id, provider, event_key, received_at, state, reason, octet_length(body) as bytes
from reports
where state = $1
order by id desc
limit $2

-- rewriteReports
with gone as (
  delete from reports
  where id = any($1::uuid[])
)
update reports r
set body = k.body
from unnest($2::uuid[], $3::bytea[]) as k (id, body)
where r.id = k.id

-- storedAfter
with next as materialized (
  select id, provider = $1 as is_own, octet_length(body) as bytes
  from reports
  where id > $2
  order by id
  limit $3
), summed as (
  select id, is_own, row_number() over (order by id) as n, sum(case when is_own then bytes
    else 0 end) over (order by id) as bytes
  from next
)
select s.id, case when s.is_own then r.body end as body
from summed s
join reports r on r.id = s.id
where s.n = 1
  or s.bytes <= $4
order by s.id
