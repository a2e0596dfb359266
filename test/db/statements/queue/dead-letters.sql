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
