-- countMatching
select count(*) as count, max(id::text) as newest, min(id::text) as oldest
from (
  select of_id as id
  from (
    select team_id as of_team, id as of_id
    from accepted_emails
    where team_id = $1
      and not internal
      and broadcast_id is null
    order by id desc
    limit $2
  ) w
) found

-- waitingEmails
select w.id, e.id is not null as fits, coalesce(e.unfinished, false) as waits
from (
  select id
  from ((
    select id
    from email_states
    where team_id = $1
      and id between $2 and $3
      and unfinished
    order by id desc
    limit $4
  ) union (
    select id
    from email_states
    where team_id = $5
      and id between $6 and $7
      and rare_status = 'bounced'
      and provider_message_id is null
    order by id desc
    limit $8
  )) never_accepted
  order by id desc
  limit $9
) w
left join lateral (
  select e.id, e.unfinished
  from emails e
  where e.team_id = $10
    and e.id = w.id
    and not internal
    and num_nonnulls(e.broadcast_id) = $11 offset 0
) e on true
order by w.id desc
