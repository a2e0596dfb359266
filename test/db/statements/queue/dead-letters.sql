-- countDeadLetters
select count(*) as count
from pgboss.job j
where name = $1
  and state < 'active'
  and coalesce(source_output ->> 'reason', source_output #>> '{value,message}', 'no reason is known') = $2
  and (
  select id < $3::bigint
    and id <> all($4::int8[])
  from (
    select newest - ((newest - j.xmin::text::bigint) & 4294967295) as id
    from (
      select greatest(pg_snapshot_xmax(pg_current_snapshot()),
        pg_current_xact_id_if_assigned())::text::bigint as newest
    ) now
  ) version
)

-- deadReasons
select coalesce(source_output ->> 'reason', source_output #>> '{value,message}',
  'no reason is known') as reason, count(*) as count, count(distinct data ->> 'team_id') as teams,
  min(created_on) as first_at, max(created_on) as last_at,
  (array_agg(source_id::text order by created_on desc))[1:$1] as samples
from pgboss.job
where name = $2
  and state < 'active'
group by 1
order by count desc, reason
limit $3

-- deleteFailedJobs
with letters as (
  delete from pgboss.job
  where name = any($1::text[])
    and id in (
    select id
    from pgboss.job
    where name = any($2::text[])
      and source_id = any($3::uuid[])
      and state < 'active'
    for update skip locked
  )
)
delete from pgboss.job
where name = any($4::text[])
  and id in (
  select id
  from pgboss.job
  where name = any($5::text[])
    and id = any($6::uuid[])
    and state > 'active'
  for update skip locked
)

-- deleteReasons
with letters as (
  update pgboss.job
  set output = null, source_output = null
  where name = any($1::text[])
    and id in (
    select id
    from pgboss.job
    where name = any($2::text[])
      and source_id = any($3::uuid[])
      and state < 'active'
    for update skip locked
  )
    and lower(concat_ws(' ', output, source_output)) ~ $4
)
update pgboss.job
set output = null, source_output = null
where name = any($5::text[])
  and id in (
  select id
  from pgboss.job
  where name = any($6::text[])
    and id = any($7::uuid[])
    and state > 'active'
  for update skip locked
)
  and lower(concat_ws(' ', output, source_output)) ~ $8

-- isOfNewerQueue
select name
from pgboss.queue
where name <> all($1::text[])

-- removeDeadLetters
delete from pgboss.job
where name = $1
  and id in (
  select id
  from pgboss.job j
  where name = $2
    and state < 'active'
    and (
    select id < $3::bigint
      and id <> all($4::int8[])
    from (
      select newest - ((newest - j.xmin::text::bigint) & 4294967295) as id
      from (
        select greatest(pg_snapshot_xmax(pg_current_snapshot()),
          pg_current_xact_id_if_assigned())::text::bigint as newest
      ) now
    ) version
  )
    and ($5::text is null or coalesce(source_output ->> 'reason', source_output #>> '{value,message}',
      'no reason is known') = $6)
  order by created_on
  limit $7
  for update skip locked
)
returning data
