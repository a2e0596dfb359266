-- reachedBy
select page.id, page.contact_id, e.to_emails[1] as email, e.status, e.created_at, (
  select v.detail
  from email_events v
  where v.team_id = page.team_id
    and v.email_id = page.id
  order by v.occurred_at desc
  limit 1
) as detail
from (
  select *
  from ((
    select team_id, id, contact_id
    from email_states m
    where team_id = $1
      and broadcast_id = $2
      and broadcast_status = $3
      and contact_id > $4
      and ((m.status = 'queued' and m.provider_message_id is null and exists (
      select
      from email_events v
      where v.team_id = m.team_id
        and v.email_id = m.id
        and v.kind = 'gave_up'
        and v.occurred_at >= coalesce(m.tries_from, m.created_at)
    )) is true)
    order by contact_id
    limit $5
  )) s
  order by contact_id
  limit $6
) page
cross join lateral (
  select *
  from emails
  where team_id = page.team_id
    and id = page.id offset 0
) e
order by page.contact_id

-- reachedBy
select page.id, page.contact_id, e.to_emails[1] as email, e.status, e.created_at, (
  select v.detail
  from email_events v
  where v.team_id = page.team_id
    and v.email_id = page.id
  order by v.occurred_at desc
  limit 1
) as detail
from (
  select *
  from ((
    select team_id, id, contact_id
    from email_states m
    where team_id = $1
      and broadcast_id = $2
      and broadcast_status = $3
      and contact_id > $4
      and not ((m.status = 'queued' and m.provider_message_id is null and exists (
      select
      from email_events v
      where v.team_id = m.team_id
        and v.email_id = m.id
        and v.kind = 'gave_up'
        and v.occurred_at >= coalesce(m.tries_from, m.created_at)
    )) is true)
    order by contact_id
    limit $5
  )) s
  order by contact_id
  limit $6
) page
cross join lateral (
  select *
  from emails
  where team_id = page.team_id
    and id = page.id offset 0
) e
order by page.contact_id

-- reachedBy
select page.id, page.contact_id, e.to_emails[1] as email, e.status, e.created_at, (
  select v.detail
  from email_events v
  where v.team_id = page.team_id
    and v.email_id = page.id
  order by v.occurred_at desc
  limit 1
) as detail
from (
  select *
  from ((
    select team_id, id, contact_id
    from email_states m
    where team_id = $1
      and broadcast_id = $2
      and broadcast_status = $3
      and contact_id > $4
    order by contact_id
    limit $5
  )) s
  order by contact_id
  limit $6
) page
cross join lateral (
  select *
  from emails
  where team_id = page.team_id
    and id = page.id offset 0
) e
order by page.contact_id

-- skippedBy
select contact_id, email, reason, detail, at
from broadcast_skips
where team_id = $1
  and broadcast_id = $2
  and contact_id > $3
order by contact_id
limit $4
