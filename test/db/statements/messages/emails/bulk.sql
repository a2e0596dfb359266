-- countMatching
select count(*) as count, max(id::text) as newest, min(id::text) as oldest
from (
  select of_id as id
  from (
    select team_id as of_team, id as of_id
    from email_states m
    where team_id = $1
      and not internal
      and (broadcast_id = $2) is true
      and status = $3
    order by id desc
    limit $4
  ) w
) found

-- countMatching
select count(*) as count, max(id::text) as newest, min(id::text) as oldest
from (
  select of_id as id
  from (
    select team_id as of_team, id as of_id
    from email_states m
    where team_id = $1
      and not internal
      and (broadcast_id = $2) is true
    order by id desc
    limit $3
  ) w
) found

-- countMatching
select count(*) as count, max(id::text) as newest, min(id::text) as oldest
from (
  select of_id as id
  from (
    select team_id as of_team, id as of_id
    from email_states m
    where team_id = $1
      and not internal
    order by id desc
    limit $2
  ) w
) found

-- idsAsSeen
select e.id
from email_states e
where e.team_id = $1
  and e.id = any($2::uuid[])
  and (
  select id < $3::bigint
    and id <> all($4::int8[])
  from (
    select newest - ((newest - e.xmin::text::bigint) & 4294967295) as id
    from (
      select greatest(pg_snapshot_xmax(pg_current_snapshot()),
        pg_current_xact_id_if_assigned())::text::bigint as newest
    ) now
  ) version
)
  and ((e.status = 'queued' and e.provider_message_id is null and exists (
  select
  from email_events v
  where v.team_id = e.team_id
    and v.email_id = e.id
    and v.kind = 'gave_up'
    and v.occurred_at >= coalesce(e.tries_from, e.created_at)
    and (
    select id < $5::bigint
      and id <> all($6::int8[])
    from (
      select newest - ((newest - v.xmin::text::bigint) & 4294967295) as id
      from (
        select greatest(pg_snapshot_xmax(pg_current_snapshot()),
          pg_current_xact_id_if_assigned())::text::bigint as newest
      ) now
    ) version
  )
)) is true)
order by e.id desc

-- idsAsSeen
select e.id
from email_states e
where e.team_id = $1
  and e.id = any($2::uuid[])
  and (
  select id < $3::bigint
    and id <> all($4::int8[])
  from (
    select newest - ((newest - e.xmin::text::bigint) & 4294967295) as id
    from (
      select greatest(pg_snapshot_xmax(pg_current_snapshot()),
        pg_current_xact_id_if_assigned())::text::bigint as newest
    ) now
  ) version
)
order by e.id desc

-- idsMatching
select id
from (
  select of_id as id
  from (
    select team_id as of_team, id as of_id
    from email_states m
    where team_id = $1
      and not internal
      and id < $2
    order by id desc
    limit $3
  ) w
) found
order by id desc

-- idsToRequeue
select e.id
from emails e
where e.team_id = $1
  and e.due_at is not null
  and not internal
  and recipient_identities(e.to_emails) && $2::text[]
  and num_nonnulls(e.to_emails) = 1
  and e.id in (
  select id
  from accepted_emails
  where team_id = $3
    and (id = any($4::uuid[]) or idempotency_key = any($5::text[]) or http_request_id = any($6::text[]))
  union all
  select id
  from email_states
  where team_id = $7
    and provider_message_id = any($8::text[])
)
  and e.subject ilike all ($9::text[])
  and concat_ws(E' ', e.subject, array_to_string(e.to_emails, E' ')) ilike all ($10::text[])
  and ((e.status = 'queued' and e.provider_message_id is null and exists (
  select
  from email_events v
  where v.team_id = e.team_id
    and v.email_id = e.id
    and v.kind = 'gave_up'
    and v.occurred_at >= coalesce(e.tries_from, e.created_at)
)) is true)
  and substring(lower(e.from_address) from '@([^@>]+)>?$') = any($11::text[])
  and e.template_id = $12
  and e.broadcast_id = $13
  and num_nonnulls(e.broadcast_id) = $14
  and e.tags::jsonb ? $15
  and (e.id >= (
  select $16::uuid
) and e.state_id >= (
  select $17::uuid
))
  and (e.id < (
  select $18::uuid
) and e.state_id < (
  select $19::uuid
))
  and (e.id >= (
  select $20::uuid
) and e.state_id >= (
  select $21::uuid
))
  and (e.id <= (
  select $22::uuid
) and e.state_id <= (
  select $23::uuid
))
  and (e.unfinished or e.status = 'bounced' and e.provider_message_id is null)

-- waitingEmails
select w.id, e.id is not null as fits, coalesce(e.unfinished, false) as waits
from (
  select id
  from ((
    select id
    from email_states
    where team_id = $1
      and id >= $2
      and id between $3 and $4
      and id < $5
      and unfinished
    order by id desc
    limit $6
  ) union (
    select id
    from email_states
    where team_id = $7
      and id >= $8
      and id between $9 and $10
      and id < $11
      and rare_status = 'bounced'
      and provider_message_id is null
    order by id desc
    limit $12
  )) never_accepted
  order by id desc
  limit $13
) w
left join lateral (
  select e.id, e.unfinished
  from emails e
  where e.team_id = $14
    and e.id = w.id
    and not internal offset 0
) e on true
order by w.id desc
