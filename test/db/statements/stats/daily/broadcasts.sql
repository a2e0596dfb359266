-- findStats
select broadcast_id, figure, sum(count)::integer as count
from (
  select broadcast_id, figure, count
  from broadcast_figures
  where team_id = $1
    and broadcast_id = any($2::uuid[])
  union all
  select broadcast_id, status, count
  from figure_deltas
  where team_id = $3
    and broadcast_id = any($4::uuid[])
) f
group by broadcast_id, figure

-- keepStats
insert into figure_deltas (team_id, channel, hour, broadcast_id, status, count)
select $1, 'broadcast', now(), broadcast_id, status, count(*)
from unnest($2::uuid[], $3::text[]) as kept (broadcast_id, status)
group by broadcast_id, status
