-- filesOfEmails
select e.team_id, e.id, a ->> 'filename' as filename, a ->> 'sha256' as sha256
from accepted_emails e
cross join lateral json_array_elements(e.attachments) a
where e.attachments is not null
  and (e.team_id, e.id) in (
  select *
  from unnest($1::uuid[], $2::uuid[]) as w (team_id, id)
)
