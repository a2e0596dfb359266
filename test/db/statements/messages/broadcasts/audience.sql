-- audienceSize
select count(*)::integer as count
from contacts
where team_id = $1
  and status = 'subscribed'
  and suppression is null
  and topic_ids && $2::uuid[]
  and topic_ids <> '{}'

-- contactsLeft
select id
from contacts
where team_id = $1
  and id = any($2::uuid[])

-- nextMembers
select id as last
from contacts
where team_id = $1
  and id > $2
order by id offset $3
limit 1

-- nextMembers
select id, email, identity, properties
from (
  select *
  from contacts
  where team_id = $1
    and id > $2
  order by id
  limit $3
) contacts
where created_at < $4
  and status = 'subscribed'
  and suppression is null
  and topic_ids && $5::uuid[]
  and topic_ids <> '{}'
  and not exists (
  select
  from (
    select broadcast_id
    from accepted_emails
    where team_id = $6
      and person = contacts.identity offset 0
  ) had
  where had.broadcast_id = $7
)
  and not exists (
  select
  from (
    select broadcast_id
    from broadcast_skips
    where team_id = $8
      and person = contacts.identity offset 0
  ) skipped
  where skipped.broadcast_id = $9
)
order by id
limit $10
