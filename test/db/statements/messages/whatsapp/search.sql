-- messagesFound
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
  and m.recipient = any($2::text[])
  and m.id in (
  select id
  from whatsapp_messages
  where team_id = $3
    and (id = any($4::uuid[]) or provider_message_id = any($5::text[]))
  union all
  select m.id
  from whatsapp_requests r
  join whatsapp_messages m on m.team_id = r.team_id
    and m.request_id = r.id
  where r.team_id = $6
    and (r.idempotency_key = any($7::text[]) or r.http_request_id = any($8::text[]))
)
  and m.status = $9
  and m.due_at is not null
  and r.template_id = $10
  and m.id >= $11
  and m.id < $12
  and m.id < $13
order by m.id desc
limit $14
