with held (held_team, held_id) as materialized (
  select team_id, id
  from email_states m
  where (team_id, id) in (
    select *
    from unnest($1::uuid[], $2::uuid[]) as ref (team_id, id)
  )
    and (unfinished and not (expired_at is not null or coalesce(expires_at <= service_time(), false)))
  order by team_id, id
  for no key update
)
update email_states m
set requeued_at = to_timestamp($3), tries_from = to_timestamp($4), status = case when (status = 'queued'
  and provider_message_id is null or pending_recipients is not null) then m.status else 'queued' end ,
  suppression = $5
from held
where m.team_id = held_team
  and m.id = held_id
  and not false
returning m.team_id, m.id, case when team_id in (
  select id from teams where test
) then 'deliver-test' when broadcast_id is null then 'deliver-email' else 'deliver-broadcast' end as job,
  null::text as sender
