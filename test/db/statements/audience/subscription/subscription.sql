-- leaveWhileSuppressed
update contacts
set status_before = 'unsubscribed'
where team_id = $1
  and identity = $2
  and status in ('bounced', 'complained')
returning id

-- topicsOfContact
select id, topic_ids, left_topic_ids
from contacts
where team_id = $1
  and identity = $2

-- writeTopics
update contacts
set topic_ids = $1::uuid[], left_topic_ids = $2::uuid[], updated_at = greatest(to_timestamp($3),
  updated_at + interval '1 millisecond')
where team_id = $4
  and id = $5
returning (exists (
  select
  from webhook_endpoints w
  where w.team_id = contacts.team_id
    and (w.state = 'enabled' or w.disabled_at > now() - $6 * interval '1 day')
)) as has_listeners
