-- eventsOfEmail
select kind, recipient, occurred_at, detail
from email_events
where team_id = $1
  and email_id = $2
order by occurred_at, kind = 'gave_up', event_key

-- lastResponses
select distinct on (email_id) email_id as id, detail
from email_events
where team_id = $1
  and email_id = any($2::uuid[])
  and kind = any($3::text[])
  and detail <> ''
order by email_id, occurred_at desc
