-- readQueuePosition
select case when (
  select start_after from pgboss.job where name = $1 and state < 'active'
    and not blocked order by start_after limit 1
) <= now() then coalesce((
  select -priority from (
    select priority, start_after from pgboss.job where name = $2 and state < 'active'
      and not blocked order by priority desc, created_on limit $3
  ) front where start_after <= now() order by priority desc limit 1
), (
  select min(-priority) from (
    select priority from pgboss.job where name = $4 and state < 'active' and not blocked
      and start_after <= now() order by start_after limit $5
  ) due
)) end as head, setval($6, greatest(last_value, $7::bigint)) as top
from deliver_email_places
