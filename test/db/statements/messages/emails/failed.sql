-- countFailed
with counted as materialized (
  select not ($1 and exists (
    select
    from broadcasts
    where team_id = $2
  )) as yes
)
select count(*) as looked, count(s.id) as failed, (
  select yes
  from counted
) as is_counted
from (
  select distinct team_id as of_team, email_id as of_id
  from email_events
  where team_id = $3
    and kind = 'gave_up'
    and email_id >= $4
  order by email_id desc
  limit (
    select case when yes then $5::int else 0 end
    from counted
  )
) f
left join lateral (
  select m.id
  from email_states m
  where m.team_id = of_team
    and m.id = of_id
    and ((m.status = 'queued' and m.provider_message_id is null and exists (
    select
    from email_events v
    where v.team_id = m.team_id
      and v.email_id = m.id
      and v.kind = 'gave_up'
      and v.occurred_at >= coalesce(m.tries_from, m.created_at)
  )) is true)
    and not internal
    and broadcast_id = $6 offset 0
) s on true

-- countFailed
with counted as materialized (
  select not ($1 and exists (
    select
    from broadcasts
    where team_id = $2
  )) as yes
)
select count(*) as looked, count(s.id) as failed, (
  select yes
  from counted
) as is_counted
from (
  select distinct team_id as of_team, email_id as of_id
  from email_events
  where team_id = $3
    and kind = 'gave_up'
    and email_id >= $4
  order by email_id desc
  limit (
    select case when yes then $5::int else 0 end
    from counted
  )
) f
left join lateral (
  select m.id
  from email_states m
  where m.team_id = of_team
    and m.id = of_id
    and ((m.status = 'queued' and m.provider_message_id is null and exists (
    select
    from email_events v
    where v.team_id = m.team_id
      and v.email_id = m.id
      and v.kind = 'gave_up'
      and v.occurred_at >= coalesce(m.tries_from, m.created_at)
  )) is true)
    and not internal offset 0
) s on true
