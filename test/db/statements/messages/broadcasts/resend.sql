-- countUnreached
select count(*)::integer as audience, count(*) filter (where not jsonb_exists_all(properties,
  $1::text[]))::integer as lacking
from contacts
where team_id = $2
  and status = 'subscribed'
  and suppression is null
  and topic_ids && $3::uuid[]
  and topic_ids <> '{}'
  and not topic_ids && $4::uuid[]
  and coalesce(((properties ->> $5) collate "C" < $6), false)
  and not exists (
  select
  from (
    select broadcast_id
    from accepted_emails
    where team_id = $7
      and person = contacts.identity offset 0
  ) had
  where had.broadcast_id = $8
)
  and not exists (
  select
  from (
    select broadcast_id
    from broadcast_skips
    where team_id = $9
      and person = contacts.identity offset 0
  ) skipped
  where skipped.broadcast_id = $10
)

-- deleteSkips
with gone as (
  delete from broadcast_skips
  where team_id = $1
    and broadcast_id = $2
    and contact_id in (
    select id
    from contacts
    where team_id = $3
      and status = 'subscribed'
      and suppression is null
      and topic_ids && $4::uuid[]
      and topic_ids <> '{}'
      and not topic_ids && $5::uuid[]
      and coalesce(((properties ->> $6) collate "C" < $7), false)
      and not exists (
      select
      from (
        select broadcast_id
        from accepted_emails
        where team_id = $8
          and person = contacts.identity offset 0
      ) had
      where had.broadcast_id = $9
    )
      and not exists (
      select
      from (
        select broadcast_id
        from broadcast_skips
        where team_id = $10
          and person = contacts.identity offset 0
      ) skipped
      where skipped.broadcast_id = $11
    )
  )
  returning 1
)
select count(*)::integer as count
from gone

-- emailsOf
select count(*)::integer as count
from accepted_emails
where team_id = $1
  and broadcast_id = $2

-- rewind
update broadcasts
set cursor = null, walked_at = null, ended_at = null
where team_id = $1
  and id = $2
