-- addTopics
with item as (
  select contact_id, array_agg(distinct topic_id) as topics
  from unnest($1::uuid[], $2::uuid[]) as given (contact_id, topic_id)
  group by contact_id
), held as (
  select c.id, array(
    select topic
    from unnest(item.topics) topic
    where topic <> all(c.topic_ids)
      and not (c.created_at >= to_timestamp($3) and topic = any(c.left_topic_ids))
  ) as topics
  from item
  join contacts c on c.team_id = $4
    and c.id = item.contact_id
  where not c.topic_ids @> item.topics
  order by c.id
  for no key update of c
)
update contacts c
set updated_at = greatest(to_timestamp($5), updated_at + interval '1 millisecond'),
  topic_ids = c.topic_ids || held.topics
from held
where c.team_id = $6
  and c.id = held.id
  and held.topics <> '{}'

-- broadcastsNaming
select name, state
from broadcasts
where team_id = $1
  and state in ('draft', 'scheduled', 'sending', 'paused')
  and $2::uuid = any(topic_ids || exclude_topic_ids)
order by id desc

-- deleteTopic
with gone as (
  delete from topics
  where team_id = $1
    and id = $2
  returning id, name, created_at
), held as (
  select id
  from contacts
  where topic_ids @> array[$3::uuid]
    and topic_ids <> '{}'
    and exists (
    select
    from gone
  )
  order by id
  for no key update
), unsubscribed as (
  update contacts c
  set topic_ids = array_remove(topic_ids, $4), updated_at = greatest(to_timestamp($5),
    updated_at + interval '1 millisecond')
  from held
  where c.team_id = $6
    and c.id = held.id
)
select id, name, created_at
from gone

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

-- lockTopic
select
from topics
where team_id = $1
  and id = $2
for update

-- renameTopicRow
update topics t
set name = $1
where team_id = $2
  and id = $3
  and not exists (
  select
  from topics o
  where o.team_id = t.team_id
    and o.name = $4
    and o.id <> t.id
)
returning id, name, created_at

-- topicsOfTeam
select id, name, created_at
from topics
where team_id = $1
order by id
