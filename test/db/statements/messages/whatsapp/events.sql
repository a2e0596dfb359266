-- eventsOfMessage
select kind, occurred_at, detail, code
from whatsapp_events
where team_id = $1
  and message_id = $2
order by date_trunc('second', occurred_at), coalesce(array_position($3::text[], kind), 0), occurred_at,
  kind = 'gave_up', event_key

-- lastFailures
select distinct on (message_id) message_id as id, detail, code
from whatsapp_events
where team_id = $1
  and message_id = any($2::uuid[])
  and kind in ('failed', 'gave_up')
order by message_id, occurred_at desc
