-- lockCursor
insert into upkeep (kind, done_until)
values ($1, $2)
on conflict do nothing

-- lockCursor
select done_until::text as place
from upkeep
where kind = $1
for update skip locked

-- lostMessages
with m as materialized (
  select team_id, id, created_at, requeued_at, tries_from
  from email_states
  where unfinished
    and case when team_id in (
    select id from teams where test
  ) then 'deliver-test' when broadcast_id is null then 'deliver-email' else 'deliver-broadcast' end = $1
    and created_at > $2::timestamptz
  order by created_at fetch first $3 rows
  with ties
), lost as (
  select team_id, id, created_at
  from m
  where not exists (
    select
    from teams s
    where s.id = m.team_id
      and s.suspended_at is not null
  )
    and (created_at < to_timestamp($4) and coalesce(requeued_at, created_at) < to_timestamp($5) or exists (
    select
    from teams s
    where s.id = m.team_id
      and s.resumed_at >= coalesce(m.requeued_at, m.created_at)
  ))
    and not exists (
    select
    from pgboss.job j
    where j.name = $6
      and j.id = m.id
      and j.state <= 'active' offset 0
  )
    and not exists (
    select
    from pgboss.job d
    where d.name = $7
      and d.source_id = m.id
      and d.state <= 'active' offset 0
  )
    and not false
    and not exists (
    select
    from email_events v
    where v.team_id = m.team_id
      and v.email_id = m.id
      and v.kind = 'gave_up'
      and v.occurred_at >= coalesce(m.tries_from, m.created_at)
  )
  order by created_at
  limit $8
)
select (
  select case when count(*) >= $9 then max(created_at)::text end
  from m
) as next, coalesce((
  select json_agg(json_build_object('team_id', team_id, 'id', id) order by created_at)
  from lost
), '[]') as lost

-- lostOfTeam
with m as materialized (
  select team_id, id, created_at, tries_from, null::text as sender, case when team_id in (
    select id from teams where test
  ) then 'deliver-test' when broadcast_id is null then 'deliver-email'
    else 'deliver-broadcast' end = $1 as is_own
  from email_states
  where team_id = $2
    and unfinished
    and id > $3
  order by id
  limit $4
)
select (
  select case when count(*) >= $5 then max(id::text) end
  from m
) as last, coalesce((
  select json_agg(json_build_object('id', id, 'sender', sender) order by id)
  from m
  where is_own
    and not exists (
    select
    from pgboss.job j
    where j.name = $6
      and j.id = m.id
      and j.state <= 'active' offset 0
  )
    and not exists (
    select
    from pgboss.job d
    where d.name = $7
      and d.source_id = m.id
      and d.state <= 'active' offset 0
  )
    and not exists (
    select
    from pgboss.job n
    where n.name = any($8::text[])
      and n.state <= 'active'
      and (n.id = m.id or n.source_id = m.id)
  )
    and not exists (
    select
    from email_events v
    where v.team_id = m.team_id
      and v.email_id = m.id
      and v.kind = 'gave_up'
      and v.occurred_at >= coalesce(m.tries_from, m.created_at)
  )
), '[]') as lost

-- saveCursor
update upkeep
set done_until = $1::timestamptz
where kind = $2
  and done_until <> $3::timestamptz
