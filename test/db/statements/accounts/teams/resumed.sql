-- insertResumedTeam
insert into resumed_teams (team_id, queue, from_at)
select $1, q.queue, service_time() + s.seconds * interval '1 second'
from unnest($2::text[]) as q (queue), (values (0), ($3)) s (seconds)
on conflict do nothing

-- lockPass
select after
from resumed_teams
where team_id = $1
  and queue = $2
  and from_at = $3::timestamptz
for update skip locked

-- movePass
delete from resumed_teams
where team_id = $1
  and queue = $2
  and from_at = $3::timestamptz

-- movePass
update resumed_teams
set after = $1
where team_id = $2
  and queue = $3
  and from_at = $4::timestamptz

-- startedPasses
select team_id, queue, from_at::text
from resumed_teams
where from_at <= (
  select service_time()
)
  and is_at_home()
order by from_at, team_id, queue
