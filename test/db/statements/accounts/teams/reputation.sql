-- countBulkPaused
select count(*)::integer as count
from teams
where bulk_paused_at is not null

-- readBulkPause
select bulk_paused_at as since, bulk_pause as pause
from teams
where id = $1
  and bulk_paused_at is not null
