-- contactFurther
select id
from contacts
where team_id = $1
  and (created_at, id) < (
  select created_at, id
  from contacts
  where team_id = $2
    and id = $3
)
order by created_at desc, id desc offset $4
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
      and (created_at, id) < (
      select created_at, id
      from contacts
      where team_id = $2
        and id = $3
    )
    order by created_at desc, id desc
    limit $4
  ) contacts
  where team_id = $5
    and status = $6
    and (email ilike $7 or id in (
    select id
    from contacts
    where team_id = $8
      and has_two_forms
      and identity ilike $9
  ))
    and not exists (
    select
    from unnest($10::text[]) word
    where not (email ilike word or identity ilike word or exists (
      select
      from jsonb_each_text(properties) p
      where p.value ilike word
    ))
  )
    and topic_ids @> array[$11::uuid]
    and topic_ids <> '{}'
    and id in (
    select unnest(contact_ids)
    from contact_import_slices
    where team_id = $12
      and import_id = $13
  )
    and (created_at, id) < (
    select created_at, id
    from contacts
    where team_id = $14
      and id = $15
  )
  order by created_at desc, id desc
  limit $16
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
    and num_nonnulls(to_emails) = 1
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

-- missingProperties
select unnest($1::text[]) as name except
select jsonb_object_keys(properties)
from (
  select properties
  from contacts
  where team_id = $2
  order by created_at desc, id desc
  limit $3
) contacts

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

-- propertyValues
select name, value
from (
  select name, value, row_number() over (partition by name order by count(*) desc, value) as place
  from (
    select properties
    from contacts
    where team_id = $1
    order by created_at desc, id desc
    limit $2
  ) contacts, jsonb_each_text(properties) p (name, value)
  where length(value) between 1 and $3
  group by name, value
  having count(*) > 1
) common
where place <= $4
order by place, name
limit $5

-- teamsOfContactsWith
select team_id as id
from contacts
where email ilike $1
limit $2

-- teamsWithContact
select t.id
from teams t
cross join lateral (
  select
  from contacts
  where team_id = t.id
    and identity = $1 offset 0
) own
