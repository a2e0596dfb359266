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

-- messagesOfTeams
select t.id as team_id, found.channel, found.id
from teams t
cross join lateral (
  select $1::text as channel, id
  from email_states m
  where team_id = t.id
    and id in (
    select id
    from accepted_emails
    where team_id = t.id
      and (id = any($2::uuid[]) or idempotency_key = any($3::text[]) or http_request_id = any($4::text[]))
    union all
    select id
    from email_states
    where team_id = t.id
      and provider_message_id = any($5::text[])
  )
    and not internal
  union all
  select $6::text as channel, id
  from whatsapp_messages m
  where team_id = t.id
    and id in (
    select id
    from whatsapp_messages
    where team_id = t.id
      and (id = any($7::uuid[]) or provider_message_id = any($8::text[]))
    union all
    select m.id
    from whatsapp_requests r
    join whatsapp_messages m on m.team_id = r.team_id
      and m.request_id = r.id
    where r.team_id = t.id
      and (r.idempotency_key = any($9::text[]) or r.http_request_id = any($10::text[]))
  )
    and true
) found
where t.id = any($11::uuid[])
limit $12
