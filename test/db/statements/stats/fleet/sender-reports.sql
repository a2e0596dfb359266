-- blamedSenders
select sender, max(occurred_at) as last_at, (array_agg(response order by occurred_at desc))[1] as response
from sender_reports s
where occurred_at > (
  select service_time()
) - interval '1 day'
  and exists (
  select
  from sender_reports o
  where o.sender = s.sender
    and o.occurred_at between s.occurred_at - interval '1 hour'
    and s.occurred_at
  having count(distinct o.email_id) >= $1
)
group by sender
order by sender
