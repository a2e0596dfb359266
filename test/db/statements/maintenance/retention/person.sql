-- emailsTo
select e.id, e.to_emails, e.has_copies, s.waits
from (
  select id, to_emails, has_copies
  from (
    select team_id, id, to_emails, coalesce(first_cc, first_bcc) is not null as has_copies
    from accepted_emails
    where recipient_identities(to_emails) && $1::text[] offset 0
  ) e
  where team_id = $2
    and id > $3
  order by id
  limit $4
) e
cross join lateral (
  select unfinished
    or due_at is not null as waits
  from email_states
  where team_id = $5
    and id = e.id offset 0
) s
order by e.id

-- testsShowing
select id
from accepted_emails
where team_id = $1
  and broadcast_id is null
  and person = $2
  and id > $3
order by id
limit $4
