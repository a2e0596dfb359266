-- releaseDue
with recursive clock as materialized (
  select service_time() as now
  where is_at_home()
), team as ((
  select team_id, due_at
  from email_states
  where due_at is not null
  order by team_id, due_at
  limit 1
) union all select n.* from team t cross join lateral (
  select team_id, due_at
  from email_states
  where due_at is not null
    and team_id > t.team_id
  order by team_id, due_at
  limit 1
) n), due as materialized (
  select t.team_id, c.now, ($1 + count(*) over () - 1) / count(*) over () as share
  from team t
  join clock c on t.due_at <= c.now
    and not exists (
    select
    from teams s
    where s.id = t.team_id
      and s.suspended_at is not null
  )
  order by t.due_at, t.team_id
  limit $2
), picked (of_team, of_id) as materialized (
  select r.team_id, r.id
  from due d
  cross join lateral (
    select team_id, id
    from email_states
    where team_id = d.team_id
      and due_at <= d.now
    order by due_at
    limit d.share
    for no key update skip locked
  ) r
  limit $3
)
update email_states m
set due_at = null, tries_from = due_at
from picked
where m.team_id = of_team
  and m.id = of_id
returning m.team_id, m.id, case when team_id in (
  select id from teams where test
) then 'deliver-test' when broadcast_id is null then 'deliver-email' else 'deliver-broadcast' end as job,
  null::text as sender
