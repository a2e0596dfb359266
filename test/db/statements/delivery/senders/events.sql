-- insertSenderEvents
insert into sender_events (sender, id, kind, occurred_at, detail)
select *
from unnest($1::text[], $2::uuid[], $3::text[], $4::timestamptz[], $5::text[]) as e (sender, id, kind,
  occurred_at, detail)

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
