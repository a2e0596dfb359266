-- audienceSize
select count(*)::integer as count
from contacts
where team_id = $1
  and status = 'subscribed'
  and suppression is null
  and topic_ids && $2::uuid[]
  and topic_ids <> '{}'
  and not topic_ids && $3::uuid[]
  and coalesce(((properties ->> $4) collate "C" < $5), false)

-- comparedAsText
select name as property, count(*) filter (where properties ->> name !~ $1)::integer as text,
  count(*)::integer as all
from contacts
join unnest($2::text[]) name on jsonb_exists(properties, name)
where team_id = $3
  and status = 'subscribed'
  and suppression is null
  and topic_ids && $4::uuid[]
  and topic_ids <> '{}'
  and not topic_ids && $5::uuid[]
group by name
having bool_or(properties ->> name !~ $6)
order by name

-- contactsLeft
select id
from contacts
where team_id = $1
  and id = any($2::uuid[])

-- lackingMembers
select count(*)::integer as count
from contacts
where team_id = $1
  and status = 'subscribed'
  and suppression is null
  and topic_ids && $2::uuid[]
  and topic_ids <> '{}'
  and not topic_ids && $3::uuid[]
  and coalesce(((properties ->> $4) collate "C" < $5), false)
  and not jsonb_exists_all(properties, $6::text[])

-- matchingOf
select identity
from (
  select *
  from contacts
  where team_id = $1
    and identity = any($2::text[]) offset 0
) contacts
where status = 'subscribed'
  and suppression is null
  and topic_ids && $3::uuid[]
  and topic_ids <> '{}'
  and not topic_ids && $4::uuid[]
  and coalesce(((properties ->> $5) collate "C" < $6), false)

-- memberAfter
select id, email, identity, properties
from (
  select *
  from contacts
  where team_id = $1
    and id > $2
  order by id
  limit $3
) contacts
where status = 'subscribed'
  and suppression is null
  and topic_ids && $4::uuid[]
  and topic_ids <> '{}'
  and not topic_ids && $5::uuid[]
  and coalesce(((properties ->> $6) collate "C" < $7), false)
order by id
limit 1

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
  and not topic_ids && $6::uuid[]
  and coalesce(((properties ->> $7) collate "C" < $8), false)
  and not exists (
  select
  from (
    select broadcast_id
    from accepted_emails
    where team_id = $9
      and person = contacts.identity offset 0
  ) had
  where had.broadcast_id = $10
)
  and not exists (
  select
  from (
    select broadcast_id
    from broadcast_skips
    where team_id = $11
      and person = contacts.identity offset 0
  ) skipped
  where skipped.broadcast_id = $12
)
order by id
limit $13
