-- holdTopics
select id
from topics
where team_id = $1
  and id = any($2::uuid[])
order by id for key share

-- insertTopic
insert into topics (team_id, id, name, created_at)
values ($1, $2, $3, to_timestamp($4))
on conflict (team_id, name) do nothing
returning id, name, created_at

-- topicsOfTeam
select id, name, created_at
from topics
where team_id = $1
order by id
