with held as materialized (
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
set requeued_at = to_timestamp($3), tries_from = to_timestamp($4), status = case
  when m.unfinished then m.status else 'queued' end
from held h
where m.team_id = h.team_id
  and m.id = h.id
returning m.team_id, m.id, case when broadcast_id is null then 'deliver-email'
  else 'deliver-broadcast' end as job, null::text as sender
