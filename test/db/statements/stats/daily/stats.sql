-- deleteDailyStats
delete from daily_figures
where (team_id, channel, day, status) in (
  select team_id, channel, day, status
  from daily_figures
  where day < $1::date
  order by day
  limit $2
)

-- deleteHours
delete from hourly_figures
where (team_id, channel, hour, status) in (
  select team_id, channel, hour, status
  from hourly_figures
  where hour < now() - interval '2 days'
  order by hour
  limit $1
)

-- figuresSince
select day::text, status, sum(count) as count
from (
  select channel, day, status, count
  from daily_figures
  where team_id = $1
  union all
  select channel, (hour at time zone 'UTC')::date, status, count
  from figure_deltas
  where team_id = $2
) f
where channel = $3
  and day >= $4
group by day, status
having sum(count) <> 0
order by day, status

-- firstDay
select least((
  select min(day)
  from daily_figures
  where team_id = $1
    and channel = $2
), (
  select min((hour at time zone 'UTC')::date)
  from figure_deltas
  where team_id = $3
    and channel = $4
))::text as day

-- foldDeltas
with taken as (
  delete from figure_deltas
  where (team_id, id) in (
    select team_id, id
    from figure_deltas
    limit $1
    for update skip locked
  )
  returning team_id, channel, hour, broadcast_id, status, count
), of_broadcasts as (
  select *
  from taken
  where broadcast_id is not null
), of_days as (
  select *
  from taken
  where channel <> 'broadcast'
), added_to_broadcasts as (
  insert into broadcast_figures as f (team_id, broadcast_id, figure, count)
  select team_id, broadcast_id, status, sum(count)
  from of_broadcasts
  where (team_id, broadcast_id) in (
    select team_id, id
    from broadcasts
  )
  group by team_id, broadcast_id, status
  having sum(count) <> 0
  order by team_id, broadcast_id, status
  on conflict (team_id, broadcast_id, figure) do
  update
  set count = f.count + excluded.count
), added as (
  insert into daily_figures as f (team_id, channel, day, status, count)
  select team_id, channel, (hour at time zone 'UTC')::date as day, status, sum(count)
  from of_days
  where team_id in (
    select id
    from teams
  )
  group by team_id, channel, day, status
  having sum(count) <> 0
  order by team_id, channel, day, status
  on conflict (team_id, channel, day, status) do
  update
  set count = f.count + excluded.count
), added_to_hours as (
  insert into hourly_figures as f (team_id, channel, hour, status, count)
  select team_id, channel, hour, status, sum(count)
  from of_days
  where team_id in (
    select id
    from teams
  )
    and hour >= now() - interval '2 days'
  group by team_id, channel, hour, status
  having sum(count) <> 0
  order by team_id, channel, hour, status
  on conflict (team_id, channel, hour, status) do
  update
  set count = f.count + excluded.count
)
select count(*) as folded
from taken

-- hoursSince
select hour, status, sum(count) as count
from (
  select channel, hour, status, count
  from hourly_figures
  where team_id = $1
  union all
  select channel, hour, status, count
  from figure_deltas
  where team_id = $2
) f
where channel = $3
  and hour >= to_timestamp($4)
group by hour, status
having sum(count) <> 0
order by hour, status

-- lockStats
select pg_advisory_xact_lock(hashtext('daily_figures'))
