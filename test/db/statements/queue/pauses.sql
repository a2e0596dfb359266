-- pausedQueues
select queue, paused_at, paused_by, reason
from paused_queues
union all
select d.queue, null, null, $1
from unnest($2::text[]) d (queue)
where not is_at_home()
  and not exists (
  select
  from paused_queues p
  where p.queue = d.queue
)
