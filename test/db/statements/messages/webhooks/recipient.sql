-- subjectsOfAddress
select id
from contacts
where team_id = $1
  and identity = any($2::text[])
union all (
  select id
  from accepted_emails
  where team_id = $3
    and not internal
    and recipient_identities(to_emails) && $4::text[]
  order by id desc
  limit $5
)
