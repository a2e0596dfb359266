-- startedPasses
select team_id, queue, from_at::text
from resumed_teams
where from_at <= (
  select service_time()
)
  and is_at_home()
order by from_at, team_id, queue
