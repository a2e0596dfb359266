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
      and contact_id > $3
      and broadcast_status = $4
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
with few as materialized (
  select of_id
  from (
    select distinct team_id as of_team, email_id as of_id
    from email_events
    where team_id = $1
      and kind = 'gave_up'
      and email_id >= $2
    order by email_id desc
  ) f
  limit $3
), counted as materialized (
  select count(*) > $4 as are_many
  from few
)
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
    select m.*
    from few
    cross join lateral (
      select team_id, id, contact_id
      from email_states m
      where team_id = $5
        and broadcast_id = $6
        and contact_id > $7
        and id = of_id
        and ((m.status = 'queued' and m.provider_message_id is null and exists (
        select
        from email_events v
        where v.team_id = m.team_id
          and v.email_id = m.id
          and v.kind = 'gave_up'
          and v.occurred_at >= coalesce(m.tries_from, m.created_at)
      )) is true) offset 0
    ) m
    where not (
      select are_many
      from counted
    )
    order by contact_id
    limit $8
  ) union all (
    select team_id, id, contact_id
    from email_states m
    where team_id = $9
      and broadcast_id = $10
      and contact_id > $11
      and broadcast_status = $12
      and (
      select are_many
      from counted
    )
      and ((m.status = 'queued' and m.provider_message_id is null and exists (
      select
      from email_events v
      where v.team_id = m.team_id
        and v.email_id = m.id
        and v.kind = 'gave_up'
        and v.occurred_at >= coalesce(m.tries_from, m.created_at)
    )) is true)
    order by contact_id
    limit $13
  )) s
  order by contact_id
  limit $14
) page
cross join lateral (
  select *
  from emails
  where team_id = page.team_id
    and id = page.id offset 0
) e
order by page.contact_id

-- reachedBy
with few as materialized (
  select of_id
  from (
    select distinct team_id as of_team, email_id as of_id
    from email_events
    where team_id = $1
      and kind = 'gave_up'
      and email_id >= $2
    order by email_id desc
  ) f
  limit $3
), counted as materialized (
  select count(*) > $4 as are_many
  from few
)
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
    select m.*
    from few
    cross join lateral (
      select team_id, id, contact_id
      from email_states m
      where team_id = $5
        and broadcast_id = $6
        and contact_id > $7
        and id = of_id
        and ((m.status = 'queued' and m.provider_message_id is null and exists (
        select
        from email_events v
        where v.team_id = m.team_id
          and v.email_id = m.id
          and v.kind = 'gave_up'
          and v.occurred_at >= coalesce(m.tries_from, m.created_at)
      )) is true) offset 0
    ) m
    where not (
      select are_many
      from counted
    )
    order by contact_id
    limit $8
  ) union all (
    select team_id, id, contact_id
    from email_states m
    where team_id = $9
      and broadcast_id = $10
      and contact_id > $11
      and broadcast_status = $12
    order by contact_id
    limit $13
  )) s
  order by contact_id
  limit $14
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

-- skipsOf
select contact_id, email, reason, detail, at
from broadcast_skips
where team_id = $1
  and broadcast_id = $2
  and contact_id = any($3::uuid[])
