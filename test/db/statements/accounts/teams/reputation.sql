-- countBulkPaused
select count(*)::integer as count
from teams
where bulk_paused_at is not null

-- readBulkPause
select bulk_paused_at as since, bulk_pause as pause
from teams
where id = $1
  and bulk_paused_at is not null

-- setBulkPaused
update teams
set bulk_paused_at = service_time(), bulk_pause = $1
where id = $2
  and bulk_paused_at is null
returning id

-- setBulkResumed
update teams
set bulk_paused_at = null, reputation_from = service_time()
where id = $1
  and bulk_paused_at is not null
returning id

-- setWarned
update teams
set reputation_warned_at = service_time()
where id = $1
  and bulk_paused_at is null
  and coalesce(reputation_warned_at < service_time() - interval '24 hours', true)
returning id

-- teamsNotPaused
select id
from (
  select id, bulk_paused_at
  from teams
  where id = any($1::uuid[])
  order by id for share
) t
where bulk_paused_at is null
