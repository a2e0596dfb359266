-- countDeadLetters
select count(*) as count
from pgboss.job
where name = $1
  and state < 'active'

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

-- isOfNewerQueue
select name
from pgboss.queue
where name <> all($1::text[])
