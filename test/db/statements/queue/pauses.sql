-- deletePauses
delete from paused_queues
where queue = any($1::text[])

-- deletePausesFor
delete from paused_queues
where reason = $1
returning queue

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

-- storePauses
insert into paused_queues (queue, paused_at, paused_by, reason)
select queue, to_timestamp($1), $2, $3
from unnest($4::text[]) queue
on conflict (queue) do
update
set paused_by = excluded.paused_by, reason = null
where paused_queues.reason is not null
  and excluded.reason is null
