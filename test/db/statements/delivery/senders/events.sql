-- senderEvents
select e.sender, e.occurred_at as time, e.kind, e.detail
from senders s
cross join lateral (
  select *
  from sender_events
  where sender = s.key
  order by id desc
  limit $1
) e
where not starts_with(s.key, $2)
order by e.sender, e.id desc
