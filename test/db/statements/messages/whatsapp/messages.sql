-- messageById
select m.team_id, m.id, m.request_id, r.template_id, m.recipient, m.country, case when (m.was_sent
  and m.status = 'queued') then 'sent' else m.status end as status, r.parameters, r.idempotency_key,
  r.http_request_id, m.created_at, m.requeued_at, m.accepted_at, m.provider_message_id, m.wa_id, m.pricing,
  m.scheduled_at, m.expires_at, m.due_at
from whatsapp_messages m
cross join lateral (
  select *
  from whatsapp_requests
  where team_id = m.team_id
    and id = m.request_id offset 0
) r
where m.team_id = $1
  and m.id = $2
