-- findEnds
select id, case when status = 'bounced' then 'skipped' when expired_at is not null then 'expired'
  else 'failed' end as ended
from email_states m
where team_id = $1
  and id = any($2::uuid[])
  and (status = 'bounced' and suppression = 'applied' or status = 'queued' and provider_message_id is null
    and (expired_at is not null or exists (
  select
  from email_events v
  where v.team_id = m.team_id
    and v.email_id = m.id
    and v.kind = 'gave_up'
    and v.occurred_at >= coalesce(m.tries_from, m.created_at)
)))
