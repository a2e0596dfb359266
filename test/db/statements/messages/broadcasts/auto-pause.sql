-- readTallies
select braked_at_figures as braked
from broadcasts
where team_id = $1
  and id = $2

-- saveAutoPaused
update broadcasts
set braked_at_figures = $1, brake = $2
where team_id = $3
  and id = $4

-- stoppedBroadcasts
select b.team_id, t.name as team, b.id, b.name, b.state_reason, b.brake
from broadcasts b
join teams t on t.id = b.team_id
where b.state_reason is not null
  and b.team_id = $1
order by b.id desc
limit $2
