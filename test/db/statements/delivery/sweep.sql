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
  select team_id, id, created_at, coalesce(requeued_at, created_at) as since, tries_from, case
    when team_id in (
    select id from teams where test
  ) then 'deliver-test' when broadcast_id is null then 'deliver-email'
    else 'deliver-broadcast' end = $1 as is_own
  from (
    select *
    from email_states
    where unfinished
      and created_at > $2::timestamptz
    order by created_at fetch first $3 rows
    with ties
  ) r
), jobs as (
  select id
  from pgboss.job
  where name = $4
    and state <= 'active'
    and id between (
    select id
    from m
    order by id
    limit 1
  )
    and (
    select id
    from m
    order by id desc
    limit 1
  )
), without_job as materialized (
  select m.*
  from m full
  join jobs on jobs.id = m.id
  where jobs.id is null
), lost as (
  select team_id, id, created_at
  from without_job m
  where is_own
    and not exists (
    select
    from teams s
    where s.id = m.team_id
      and s.suspended_at is not null
  )
    and (created_at < to_timestamp($5) and since < to_timestamp($6) or exists (
    select
    from teams s
    where s.id = m.team_id
      and s.resumed_at >= m.since
  ))
    and not exists (
    select
    from pgboss.job j
    where j.name = $7
      and j.id = m.id
      and j.state <= 'active' offset 0
  )
    and not exists (
    select
    from pgboss.job d
    where d.name = $8
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
  limit $9
)
select (
  select case when count(*) >= $10 then max(created_at)::text end
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
