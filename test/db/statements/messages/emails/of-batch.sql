-- teamsNotPaused
select id
from (
  select id, bulk_paused_at
  from teams
  where id = any($1::uuid[])
  order by id for share
) t
where bulk_paused_at is null
