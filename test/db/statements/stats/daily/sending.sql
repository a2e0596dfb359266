-- sendingOfLastDay
select f.team_id, coalesce(sum(f.count) filter (where f.status = $1), 0)::integer as sent,
  coalesce(sum(f.count) filter (where f.status = $2), 0)::integer as hard_bounced,
  coalesce(sum(f.count) filter (where f.status = $3), 0)::integer as complained
from hourly_figures f
join teams t on t.id = f.team_id
where f.channel = 'sending'
  and f.hour >= service_time() - interval '24 hours'
  and f.hour >= coalesce(t.reputation_from, '-infinity')
  and not t.test
group by f.team_id
having sum(f.count) filter (where f.status = 'sent') >= $4

-- sendingOfWeek
select f.team_id, coalesce(sum(f.count) filter (where f.status = $1), 0)::integer as sent,
  coalesce(sum(f.count) filter (where f.status = $2), 0)::integer as hard_bounced,
  coalesce(sum(f.count) filter (where f.status = $3), 0)::integer as complained,
  coalesce(sum(f.count) filter (where f.status = $4), 0)::integer as suppressed
from daily_figures f
where f.team_id = any($5::uuid[])
  and f.channel = 'sending'
  and f.day > (service_time() at time zone 'UTC')::date - $6::int
group by f.team_id

-- teamsByShare
with week as (
  select f.team_id, sum(f.count) filter (where f.status = 'hard_bounced')::float8 as bounced,
    sum(f.count) filter (where f.status = 'complained')::float8 as complained,
    nullif(sum(f.count) filter (where f.status = 'sent'), 0) as sent
  from daily_figures f
  where f.channel = 'sending'
    and f.day > (service_time() at time zone 'UTC')::date - $1::int
  group by f.team_id
), shares as (
  select t.id, t.name, coalesce(w.bounced / w.sent, 0) as bounce_share, coalesce(w.complained / w.sent,
    0) as complaint_share
  from teams t
  left join week w on w.team_id = t.id
  where exists (
    select
    from subscriptions s
    where s.team_id = t.id
      and s.plan_key = $2
  )
), ranked as (
  select id, name, greatest(bounce_share, complaint_share)::float8 as rank
  from shares
)
select id
from ranked
where strpos(lower(name), lower($3)) > 0
  and (rank, id) < (
  select rank, id
  from ranked
  where id = $4
)
order by rank desc, id desc
limit $5

-- teamsOverLimits
with week as (
  select f.team_id, coalesce(sum(f.count) filter (where f.status = $1), 0)::integer as sent,
    coalesce(sum(f.count) filter (where f.status = $2), 0)::integer as hard_bounced,
    coalesce(sum(f.count) filter (where f.status = $3), 0)::integer as complained
  from daily_figures f
  where f.channel = 'sending'
    and f.day > (service_time() at time zone 'UTC')::date - $4::int
  group by f.team_id
)
select w.*, t.name
from week w
join teams t on t.id = w.team_id
where not t.test
  and w.sent >= $5
  and (w.hard_bounced > w.sent * $6::float8 or w.complained > w.sent * $7::float8)
order by greatest(w.hard_bounced, w.complained)::float8 / w.sent desc, w.team_id
limit $8
