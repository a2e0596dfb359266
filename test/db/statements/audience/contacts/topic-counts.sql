-- countSubscribers
select topic_id, sum(count)::bigint as count
from topic_counts
where team_id = $1
  and topic_id = any($2::uuid[])
group by topic_id

-- foldTopicCounts
with moved as (
  select distinct team_id, topic_id
  from topic_counts
  where not folded
  limit $1
), taken as (
  delete from topic_counts c using moved m
  where c.team_id = m.team_id
    and c.topic_id = m.topic_id
  returning c.team_id, c.topic_id, c.count
), added as (
  insert into topic_counts (team_id, topic_id, count, folded)
  select team_id, topic_id, sum(count), true
  from taken
  group by team_id, topic_id
  having sum(count) <> 0
)
select count(*) as folded
from moved
