-- deleteMessage
with gone as (
  delete from whatsapp_messages
  where team_id = $1
    and id = $2
  returning request_id, created_at
), timeline as (
  delete from whatsapp_events
  where team_id = $3
    and message_id = $4
), request as (
  delete from whatsapp_requests r using gone g
  where r.team_id = $5
    and r.id = g.request_id
    and not exists (
    select
    from whatsapp_messages m
    where m.team_id = $6
      and m.request_id = g.request_id
      and m.id <> $7
  )
)
select created_at
from gone
