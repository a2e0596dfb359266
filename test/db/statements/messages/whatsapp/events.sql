-- eventsOfMessage
select kind, occurred_at, detail, code
from whatsapp_events
where team_id = $1
  and message_id = $2
order by date_trunc('second', occurred_at), coalesce(array_position($3::text[], kind), 0), occurred_at,
  kind = 'gave_up', event_key
