-- namesOfThings
with ids as materialized (
  select distinct team_id, word as id
  from unnest($1::uuid[], $2::uuid[]) as given (team_id, word)
), words as materialized (
  select distinct team_id, word
  from unnest($3::uuid[], $4::text[]) as given (team_id, word)
)
select team_id, id::text as word, id::text as id, $5::text as kind, name::text as name
from ids
join broadcasts using (team_id, id)
union all
select team_id, id::text as word, id::text as id, $6::text as kind, name::text as name
from ids
join templates using (team_id, id)
union all
select team_id, id::text as word, id::text as id, $7::text as kind, name::text as name
from ids
join whatsapp_templates using (team_id, id)
union all
select team_id, id::text as word, id::text as id, $8::text as kind, name::text as name
from ids
join topics using (team_id, id)
union all
select team_id, id::text as word, id::text as id, $9::text as kind, name::text as name
from ids
join domains using (team_id, id)
union all
select team_id, id::text as word, id::text as id, $10::text as kind, name::text as name
from ids
join webhook_endpoints using (team_id, id)
union all
select team_id, id::text as word, id::text as id, $11::text as kind, id::text as name
from ids
join email_states using (team_id, id)
union all
select team_id, id::text as word, id::text as id, $12::text as kind, id::text as name
from ids
join whatsapp_messages using (team_id, id)
union all
select d.team_id, word, d.id::text, 'domain', d.name
from words
join domains d on d.team_id = words.team_id
  and d.name = word
union all
select c.team_id, word, c.id::text, 'contact', c.email
from words
join contacts c on c.team_id = words.team_id
  and c.identity = word

-- thingsNamed
(
  select id, $1::text as kind, name
  from broadcasts
  where team_id = $2
    and name ilike all ($3::text[])
  order by id desc
  limit $4
)
union all (
  select id, $5::text as kind, name
  from templates
  where team_id = $6
    and name ilike all ($7::text[])
  order by id desc
  limit $8
)
union all (
  select id, $9::text as kind, name
  from whatsapp_templates
  where team_id = $10
    and name ilike all ($11::text[])
  order by id desc
  limit $12
)
union all (
  select id, $13::text as kind, name
  from topics
  where team_id = $14
    and name ilike all ($15::text[])
  order by id desc
  limit $16
)
union all (
  select id, $17::text as kind, name
  from domains
  where team_id = $18
    and name ilike all ($19::text[])
  order by id desc
  limit $20
)
union all (
  select id, $21::text as kind, name
  from webhook_endpoints
  where team_id = $22
    and name ilike all ($23::text[])
  order by id desc
  limit $24
)
