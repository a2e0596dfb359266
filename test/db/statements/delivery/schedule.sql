-- lockDue
select due_at, scheduled_at
from email_states
where team_id = $1
  and id = $2
for update

-- markExpired
with held (of_team, of_id) as materialized (
  select team_id, id
  from email_states
  where (team_id, id) in (
    select *
    from unnest($1::uuid[], $2::uuid[]) as ref (team_id, id)
  )
    and unfinished
  order by team_id, id
  for no key update
)
update email_states m
set expired_at = to_timestamp($3)
from held
where m.team_id = of_team
  and m.id = of_id
returning m.team_id, m.id

-- moveDue
update email_states
set scheduled_at = to_timestamp($1), due_at = greatest(to_timestamp($2), to_timestamp($3)),
  expires_at = expires_at + (greatest(to_timestamp($4), to_timestamp($5)) - due_at)
where team_id = $6
  and id = $7

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

-- scheduledOfTeam
select count(*) as messages, min(due_at) as next
from (
  select due_at
  from email_states
  where team_id = $1
    and due_at is not null
    and not internal
  order by due_at
  limit $2
) due

-- whatIsDue
select name
from (
  select $1::text as name
  where (
    select min(due_at)
    from email_states
  ) <= (
    select service_time()
  )
    and not exists (
    select
    from paused_queues
    where queue = $2
      and reason = $3
  )
  union all
  select $4::text as name
  where (
    select min(due_at)
    from whatsapp_messages
  ) <= (
    select service_time()
  )
    and not exists (
    select
    from paused_queues
    where queue = $5
      and reason = $6
  )
  union all
  select $7::text as name
  where exists (
    select
    from resumed_teams
    where from_at <= (
      select service_time()
    )
  )
) due
where is_at_home()
