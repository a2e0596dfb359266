-- eventsOfEmail
select kind, recipient, occurred_at, detail
from email_events
where team_id = $1
  and email_id = $2
order by occurred_at, kind = 'gave_up', event_key
