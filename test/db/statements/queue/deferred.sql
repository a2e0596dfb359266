-- deferredJobs
select id, data ->> 'team_id' as team_id, start_after as due_at, retry_count as attempts,
  coalesce(output ->> 'reason', output #>> '{value,message}') as reason
from pgboss.job
where name = $1
  and state < 'active'
  and not blocked
  and start_after > now()
order by start_after
limit $2
