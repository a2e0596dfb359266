-- responsesTo
select r.id, e.response, e.attempts
from unnest($1::uuid[], $2::uuid[]) as r (team_id, id)
cross join lateral (
  select (array_agg(detail order by occurred_at desc))[1] as response, count(distinct occurred_at) as attempts
  from email_events v
  where v.team_id = r.team_id
    and v.email_id = r.id
    and kind = any($3::text[])
) e
where e.attempts > 0
