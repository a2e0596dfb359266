-- contactFurther
select id
from contacts
where team_id = $1
  and true
order by created_at desc, id desc offset $2
limit 1

-- contactsFound
select id, email, status, suppression, properties, topic_ids, created_at, updated_at
from contacts
join (
  select team_id as page_team, id as page_id
  from (
    select *
    from contacts
    where team_id = $1
    order by created_at desc, id desc
    limit $2
  ) contacts
  where team_id = $3
    and not exists (
    select
    from unnest($4::text[]) word
    where not (email ilike word or identity ilike word or exists (
      select
      from jsonb_each_text(properties) p
      where p.value ilike word
    ))
  )
  order by created_at desc, id desc
  limit $5
) page on team_id = page_team
  and id = page_id
order by created_at desc, id desc

-- contactsFound
select id, email, status, suppression, properties, topic_ids, created_at, updated_at
from contacts
join (
  select team_id as page_team, id as page_id
  from contacts
  where team_id = $1
    and email ilike $2
  order by created_at desc, id desc
  limit $3
) page on team_id = page_team
  and id = page_id
order by created_at desc, id desc

-- contactsFound
select id, email, status, suppression, properties, topic_ids, created_at, updated_at
from contacts
join (
  select team_id as page_team, id as page_id
  from contacts
  where team_id = $1
  order by created_at desc, id desc
  limit $2
) page on team_id = page_team
  and id = page_id
order by created_at desc, id desc

-- contactsWithIdentities
select email, identity, suppression
from contacts
where team_id = $1
  and identity = any($2::text[])
order by identity

-- emailsToContact
select e.id, e.subject, s.status, e.created_at
from (
  select id, subject, created_at
  from accepted_emails
  where team_id = $1
    and not internal
    and recipient_identities(to_emails) && $2::text[]
  order by id desc
  limit $3
) e
cross join lateral (
  select status
  from email_states
  where team_id = $4
    and id = e.id offset 0
) s
order by e.id desc

-- propertyNames
select name
from (
  select properties
  from contacts
  where team_id = $1
  order by created_at desc, id desc
  limit $2
) contacts, jsonb_object_keys(properties) name
group by name
order by count(*) desc, name
limit $3

-- teamsOfContactsWith
select team_id as id
from contacts
where email ilike $1
limit $2
