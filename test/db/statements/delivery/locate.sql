-- messagesAnywhere
select team_id, $1::text as channel, id
from (
  select team_id, id
  from accepted_emails
  where id = any($2::uuid[])
  union
  select team_id, id
  from email_states
  where provider_message_id = any($3::text[])
  union
  select team_id, id
  from accepted_emails
  where http_request_id = any($4::text[])
  union
  select team_id, id
  from accepted_emails
  where idempotency_key = any($5::text[])
) one
union all
select team_id, $6::text as channel, id
from (
  select team_id, id
  from whatsapp_messages
  where id = any($7::uuid[])
  union
  select team_id, id
  from whatsapp_messages
  where provider_message_id = any($8::text[])
  union
  select m.team_id, m.id
  from whatsapp_requests r
  join whatsapp_messages m on m.team_id = r.team_id
    and m.request_id = r.id
  where r.http_request_id = any($9::text[])
  union
  select m.team_id, m.id
  from whatsapp_requests r
  join whatsapp_messages m on m.team_id = r.team_id
    and m.request_id = r.id
  where r.idempotency_key = any($10::text[])
) one
limit $11
