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
  order by created_at desc, id desc
  limit $2 offset $3
) page on team_id = page_team
  and id = page_id
order by created_at desc, id desc

-- hasAsciiForm
select 1
from contacts
where team_id = $1
  and has_two_forms
  and identity ilike $2

-- insertContact
with charged as (
  update allowances a
  set (period_start, period_end, emails_used, whatsapp_used, contacts_used, storage_used, bucket_tokens,
    refilled_at, email_place, email_batch_place, broadcast_place, whatsapp_place, whatsapp_batch_place,
    whatsapp_parts_place, whatsapp_parts_batch_place) = (
    select f.period_start, f.period_end, f.emails_used, f.whatsapp_used, f.contacts_used, f.storage_used,
      f.bucket_tokens, f.refilled_at, f.email_place, f.email_batch_place, f.broadcast_place, f.whatsapp_place,
      f.whatsapp_batch_place, f.whatsapp_parts_place, f.whatsapp_parts_batch_place
  )
  from unnest($1::uuid[], $2::timestamptz[], $3::timestamptz[], $4::int4[], $5::int4[], $6::int4[],
    $7::int8[], $8::float8[], $9::timestamptz[], $10::int8[], $11::int8[], $12::int8[], $13::int8[],
    $14::int8[], $15::int8[], $16::int8[]) as f (team_id, period_start, period_end, emails_used,
    whatsapp_used, contacts_used, storage_used, bucket_tokens, refilled_at, email_place, email_batch_place,
    broadcast_place, whatsapp_place, whatsapp_batch_place, whatsapp_parts_place, whatsapp_parts_batch_place)
  where a.team_id = f.team_id
)
insert into contacts (team_id, id, email, identity, status, suppression, properties, topic_ids,
  left_topic_ids, created_at, updated_at)
values ($17, $18, $19, $20, $21, $22, $23, $24::uuid[], $25::uuid[], to_timestamp($26), to_timestamp($27))
returning id, email, status, suppression, properties, topic_ids, created_at, updated_at

-- insertContacts
with charged as (
  update allowances a
  set (period_start, period_end, emails_used, whatsapp_used, contacts_used, storage_used, bucket_tokens,
    refilled_at, email_place, email_batch_place, broadcast_place, whatsapp_place, whatsapp_batch_place,
    whatsapp_parts_place, whatsapp_parts_batch_place) = (
    select f.period_start, f.period_end, f.emails_used, f.whatsapp_used, f.contacts_used, f.storage_used,
      f.bucket_tokens, f.refilled_at, f.email_place, f.email_batch_place, f.broadcast_place, f.whatsapp_place,
      f.whatsapp_batch_place, f.whatsapp_parts_place, f.whatsapp_parts_batch_place
  )
  from unnest($1::uuid[], $2::timestamptz[], $3::timestamptz[], $4::int4[], $5::int4[], $6::int4[],
    $7::int8[], $8::float8[], $9::timestamptz[], $10::int8[], $11::int8[], $12::int8[], $13::int8[],
    $14::int8[], $15::int8[], $16::int8[]) as f (team_id, period_start, period_end, emails_used,
    whatsapp_used, contacts_used, storage_used, bucket_tokens, refilled_at, email_place, email_batch_place,
    broadcast_place, whatsapp_place, whatsapp_batch_place, whatsapp_parts_place, whatsapp_parts_batch_place)
  where a.team_id = f.team_id
)
insert into contacts (team_id, id, email, identity, status, suppression, properties, topic_ids,
  left_topic_ids, created_at, updated_at)
select $17, id, email, identity, status, suppression, properties, '{}', left_topic_ids::uuid[],
  to_timestamp($18), to_timestamp($19)
from unnest($20::uuid[], $21::text[], $22::text[], $23::jsonb[], $24::text[], $25::text[],
  $26::text[]) as item (id, email, identity, properties, status, suppression, left_topic_ids)

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
