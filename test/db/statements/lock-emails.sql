select s.team_id, s.id as email_id, e.to_emails, s.rewrites <> e.rewrites as is_late
from email_states s
join accepted_emails e on e.team_id = s.team_id
  and e.id = s.id
where (s.team_id, s.id) in (
  select *
  from unnest($1::uuid[], $2::uuid[]) as ref (team_id, email_id)
)
order by s.team_id, s.id
for no key update of s
