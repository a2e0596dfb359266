-- deleteEmails
delete from email_events
where team_id = $1
  and email_id = any($2::uuid[])

-- deleteEmails
with held as materialized (
  select id
  from email_states
  where team_id = $1
    and id = any($2::uuid[])
  order by id
  for update
), states as (
  delete from email_states s
  where s.team_id = $3
    and s.id in (
    select id
    from held
  )
  returning s.id, s.status
)
delete from accepted_emails e using states s
where e.team_id = $4
  and e.id = s.id
returning e.id, e.created_at, s.status, e.broadcast_id, e.contact_id, e.to_emails[1] as email, e.person

-- deleteEmailsById
insert into broadcast_skips (team_id, broadcast_id, contact_id, email, reason, detail, at, person)
select $1, broadcast_id, contact_id, email, 'deleted', 'its email was deleted', service_time(), person
from unnest($2::uuid[], $3::uuid[], $4::text[], $5::text[]) as reached (broadcast_id, contact_id, email,
  person)
on conflict do nothing
