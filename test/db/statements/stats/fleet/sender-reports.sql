-- misconfiguredSenders
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

-- storeSenderReports
delete from sender_reports
where occurred_at < (
  select service_time()
) - interval '1 day'

-- storeSenderReports
insert into sender_reports (sender, domain, email_id, occurred_at, response)
select distinct on (r.sender, r.domain) r.sender, r.domain, r.email_id, r.occurred_at, r.response
from unnest($1::text[], $2::text[], $3::uuid[], $4::timestamptz[], $5::text[]) as r (sender, domain, email_id,
  occurred_at, response)
where (
  select count(*)
  from sender_reports s
  where s.sender = r.sender
    and s.occurred_at > r.occurred_at - interval '1 hour'
) < $6
order by r.sender, r.domain, r.occurred_at desc
on conflict (sender, domain) do
update
set email_id = excluded.email_id, occurred_at = excluded.occurred_at, response = excluded.response
where sender_reports.occurred_at < excluded.occurred_at
