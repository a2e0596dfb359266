-- findWhatsappEnds
select id, case when expired_at is not null then 'expired' else 'failed' end as ended
from whatsapp_messages m
where team_id = $1
  and id = any($2::uuid[])
  and (status = 'queued' and accepted_at is null)
  and (expired_at is not null or exists (
  select
  from whatsapp_events v
  where v.team_id = m.team_id
    and v.message_id = m.id
    and v.kind = 'gave_up'
    and v.occurred_at >= coalesce(m.tries_from, m.created_at)
))
