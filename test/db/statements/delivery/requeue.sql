-- markRequeued
with held (held_team, held_id) as materialized (
  select team_id, id
  from email_states m
  where (team_id, id) in (
    select *
    from unnest($1::uuid[], $2::uuid[]) as ref (team_id, id)
  )
    and ((unfinished or (status = 'bounced' and provider_message_id is null and (
    select bool_and(starts_with(v.detail, $3))
    from email_events v
    where v.team_id = m.team_id
      and v.email_id = m.id
      and v.kind in ('sent', 'delivered', 'unknown', 'bounced')
      and v.occurred_at >= coalesce(m.tries_from, m.created_at)
  )) and not exists (
    select
    from accepted_emails e
    where e.team_id = m.team_id
      and e.id = m.id
      and (e.html = '' or $4 = all(e.to_emails) or e.variables::text = '{}' and exists (
      select
      from template_versions v
      where v.team_id = e.team_id
        and v.id = e.template_version_id
        and v.slots <> '{}'
    ))
  )) and not (expired_at is not null or coalesce(expires_at <= service_time(), false)))
  order by team_id, id
  for no key update
)
update email_states m
set requeued_at = to_timestamp($5), tries_from = to_timestamp($6), status = case when (status = 'queued'
  and provider_message_id is null or pending_recipients is not null) then m.status else 'queued' end ,
  suppression = $7
from held
where m.team_id = held_team
  and m.id = held_id
  and not false
returning m.team_id, m.id, case when team_id in (
  select id from teams where test
) then 'deliver-test' when broadcast_id is null then 'deliver-email' else 'deliver-broadcast' end as job,
  null::text as sender
