-- countsOfTemplate
select s.status, count(*) as count
from (
  select id
  from accepted_emails
  where team_id = $1
    and template_id = $2
    and id >= $3
  order by id desc
  limit $4
) e
cross join lateral (
  select status
  from email_states
  where team_id = $5
    and id = e.id
  limit 1
) s
group by s.status

-- usageOfTemplates
select t.id, u.count, l.created_at as last_at
from unnest($1::uuid[]) as t (id)
cross join lateral (
  select count(*) as count
  from (
    select 1
    from accepted_emails
    where team_id = $2
      and template_id = t.id
      and id >= $3
    limit $4
  ) e
) u
left join lateral (
  select created_at
  from accepted_emails
  where team_id = $5
    and template_id = t.id
  order by id desc
  limit 1
) l on true
