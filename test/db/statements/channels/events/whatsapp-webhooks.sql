-- whatsappFacts
select m.id, m.recipient, r.template_id, r.idempotency_key, m.requeued_at
from unnest($1::uuid[], $2::uuid[]) as ref (team_id, id)
cross join lateral (
  select *
  from whatsapp_messages
  where team_id = ref.team_id
    and id = ref.id offset 0
) m
cross join lateral (
  select *
  from whatsapp_requests
  where team_id = m.team_id
    and id = m.request_id offset 0
) r
