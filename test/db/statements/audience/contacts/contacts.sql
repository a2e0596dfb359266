-- contactByIdentity
select id, email, status, suppression, properties, topic_ids, created_at, updated_at
from contacts
where team_id = $1
  and identity = $2

-- contactExists
select 1
from contacts
where team_id = $1
  and identity = $2

-- contactPage
select id, email, status, suppression, properties, topic_ids, created_at, updated_at
from contacts
join (
  select team_id as page_team, id as page_id
  from contacts
  where team_id = $1
    and status = $2
    and (email ilike $3 or id in (
    select id
    from contacts
    where team_id = $4
      and has_two_forms
      and identity ilike $5
  ))
  order by created_at desc, id desc
  limit $6 offset $7
) page on team_id = page_team
  and id = page_id
order by created_at desc, id desc

-- contactPage
select id, email, status, suppression, properties, topic_ids, created_at, updated_at
from contacts
join (
  select team_id as page_team, id as page_id
  from contacts
  where team_id = $1
  order by created_at desc, id desc
  limit $2 offset $3
) page on team_id = page_team
  and id = page_id
order by created_at desc, id desc

-- deleteContact
delete from contacts
where team_id = $1
  and identity = $2
returning email

-- hasAsciiForm
select 1
from contacts
where team_id = $1
  and has_two_forms
  and identity ilike $2

-- insertContact
with charged as (
  select
)
insert into contacts (team_id, id, email, identity, status, suppression, properties, topic_ids,
  left_topic_ids, created_at, updated_at)
values ($1, $2, $3, $4, $5, $6, $7, $8::uuid[], $9::uuid[], to_timestamp($10), to_timestamp($11))
returning id, email, status, suppression, properties, topic_ids, created_at, updated_at

-- insertContacts
with charged as (
  select
)
insert into contacts (team_id, id, email, identity, status, suppression, properties, topic_ids,
  left_topic_ids, created_at, updated_at)
select $1, id, email, identity, status, suppression, properties, '{}', left_topic_ids::uuid[],
  to_timestamp($2), to_timestamp($3)
from unnest($4::uuid[], $5::text[], $6::text[], $7::jsonb[], $8::text[], $9::text[], $10::text[]) as item (id,
  email, identity, properties, status, suppression, left_topic_ids)

-- lockContact
select id, email, status, suppression, properties, topic_ids, created_at, updated_at
from contacts
where team_id = $1
  and identity = $2
for no key update

-- propertiesOf
select identity, properties
from contacts
where team_id = $1
  and identity = any($2::text[])
order by id
for no key update

-- statusesOf
select identity, status
from contacts
where team_id = $1
  and identity = any($2::text[])

-- unsubscribeContacts
update contacts
set status = 'unsubscribed', updated_at = greatest(to_timestamp($1), updated_at + interval '1 millisecond')
where team_id = $2
  and id = any($3::uuid[])
  and status <> 'unsubscribed'
returning id, (exists (
  select
  from webhook_endpoints w
  where w.team_id = contacts.team_id
    and (w.state = 'enabled' or w.disabled_at > now() - $4 * interval '1 day')
)) as has_listeners

-- updateContact
update contacts
set properties = coalesce($1::jsonb, properties), topic_ids = case when $2 then topic_ids else $3::uuid[] end,
  updated_at = greatest(to_timestamp($4), updated_at + interval '1 millisecond')
where team_id = $5
  and identity = $6
returning id, email, status, suppression, properties, topic_ids, created_at, updated_at

-- updateContactStatus
update contacts
set status = $1, updated_at = greatest(to_timestamp($2), updated_at + interval '1 millisecond')
where team_id = $3
  and id = $4
returning id, email, status, suppression, properties, topic_ids, created_at, updated_at, (exists (
  select
  from webhook_endpoints w
  where w.team_id = contacts.team_id
    and (w.state = 'enabled' or w.disabled_at > now() - $5 * interval '1 day')
)) as has_listeners

-- writeContacts
with item as materialized (
  select $1::uuid as team_id, identity, properties
  from unnest($2::text[], $3::jsonb[]) as given (identity, properties)
), held as materialized (
  select c.team_id, c.id, c.identity, item.properties
  from item
  join contacts c on c.team_id = item.team_id
    and c.identity = item.identity
  order by c.id
  for no key update of c
), written as (
  update contacts c
  set properties = held.properties, updated_at = greatest(to_timestamp($4),
    updated_at + interval '1 millisecond')
  from held
  where c.team_id = held.team_id
    and c.id = held.id
    and held.properties is not null
)
select coalesce(json_object_agg(identity, id), '{}') as ids
from held
