-- applyTemplateUpdates
with meant as (
  select t.team_id, t.id, c.name, c.language, c.account_id, c.number, c.status, c.occurred_at as at
  from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[]) as c (name,
    language, account_id, number, status, occurred_at)
  join whatsapp_templates t on t.name = c.name
    and replace(t.language, '-', '_') = c.language
    and not team_id in (
    select id
    from teams
    where test
  )
    and exists (
    select
    from teams o
    left join whatsapp_numbers n on n.name = coalesce(o.whatsapp_number, 'default')
    where o.id = t.team_id
      and (c.number is null or n.phone_number_id = c.number)
      and case when n.account_id is not null then n.account_id = c.account_id else not exists (
      select from whatsapp_numbers where account_id = c.account_id
    ) end
  )
  order by t.team_id, t.id
  for no key update of t
), latest as (
  select distinct on (team_id, id) team_id, id, status, at
  from meant
  order by team_id, id, at desc, array_position($7::text[], status) desc
), changed as (
  update whatsapp_templates t
  set status = l.status, status_at = l.at, updated_at = to_timestamp($8)
  from latest l
  where t.team_id = l.team_id
    and t.id = l.id
    and (date_trunc('second', t.status_at) < l.at or date_trunc('second', t.status_at) = l.at
      and array_position($9::text[], l.status) > array_position($10::text[], t.status))
)
select distinct name, language, account_id, number
from meant

-- insertWhatsappTemplate
insert into whatsapp_templates as t (team_id, id, name, language, category, status, status_at, definition,
  slots, url_buttons, parts, unsupported, created_at, updated_at, account_id)
values ($1, $2, $3, $4, $5, $6, to_timestamp($7), $8, $9::text[], $10::int2[], $11, $12, to_timestamp($13),
  to_timestamp($14), (
  select n.account_id
  from teams t
  join whatsapp_numbers n on n.name = t.whatsapp_number
  where t.id = $15
))
on conflict (team_id, name, language) do nothing
returning t.team_id, t.id, t.name, t.language, t.category, t.status, t.definition, t.slots, t.url_buttons,
  t.parts, nullif(t.unsupported, $16) as unsupported, t.fault, t.created_at, t.updated_at, t.synced_at,
  t.quality, t.announced_category

-- recordFindings
update whatsapp_templates t
set status = coalesce(f.status, t.status), fault = f.fault, updated_at = to_timestamp($1), status_at = case
  when f.status is null then t.status_at else to_timestamp($2) end
from unnest($3::uuid[], $4::uuid[], $5::text[], $6::text[]) as f (team_id, template_id, status, fault)
where t.team_id = f.team_id
  and t.id = f.template_id

-- recordReportedFindings
with found as (
  select distinct on (r.team_id, r.template_id) r.team_id, r.template_id, f.status, f.fault,
    f.occurred_at as at
  from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::timestamptz[]) as f (team_id, message_id,
    status, fault, occurred_at)
  join whatsapp_messages m on m.team_id = f.team_id
    and m.id = f.message_id
  join whatsapp_requests r on r.team_id = m.team_id
    and r.id = m.request_id
  join whatsapp_templates t on t.team_id = r.team_id
    and t.id = r.template_id
  left join whatsapp_numbers n on n.phone_number_id = m.phone_number_id
    and n.name <> 'default'
  left join whatsapp_numbers d on d.name = 'default'
  where (m.phone_number_id is null or n.name is not null)
    and coalesce(t.account_id, d.account_id) is not distinct from coalesce(n.account_id, d.account_id)
  order by r.team_id, r.template_id, f.status is null, f.occurred_at desc, array_position($6::text[],
    f.status) desc
), meant as (
  select t.team_id, t.id, f.status, f.fault, f.at
  from found f
  join whatsapp_templates t on t.team_id = f.team_id
    and t.id = f.template_id
  order by t.team_id, t.id
  for no key update of t
)
update whatsapp_templates t
set status = coalesce(m.status, t.status), fault = m.fault, updated_at = to_timestamp($7), status_at = case
  when m.status is null then t.status_at else m.at end
from meant m
where t.team_id = m.team_id
  and t.id = m.id
  and (date_trunc('second', t.status_at) < m.at or date_trunc('second', t.status_at) = m.at
    and coalesce(array_position($8::text[], m.status) > array_position($9::text[], t.status), true))

-- refreshTemplates
update whatsapp_templates t
set account_id = $1, status = case when t.status_at > to_timestamp($2) then t.status else c.status end,
  status_at = greatest(t.status_at, to_timestamp($3)), category = c.category, definition = c.definition,
  slots = array(
  select json_array_elements_text(c.slots)
), url_buttons = array(
  select json_array_elements_text(c.url_buttons)::int2
), parts = c.parts, unsupported = c.unsupported, updated_at = greatest(t.updated_at, to_timestamp($4)),
  synced_at = greatest(t.synced_at, to_timestamp($5)), fault = case
  when t.updated_at > to_timestamp($6) then t.fault end
from unnest($7::text[], $8::text[], $9::text[], $10::text[], $11::json[], $12::json[], $13::json[],
  $14::json[], $15::text[]) as c (name, language, category, status, definition, slots, url_buttons, parts,
  unsupported)
where t.team_id = $16
  and t.name = c.name
  and t.language = c.language
returning t.team_id, t.id, t.name, t.language, t.category, t.status, t.definition, t.slots, t.url_buttons,
  t.parts, nullif(t.unsupported, $17) as unsupported, t.fault, t.created_at, t.updated_at, t.synced_at,
  t.quality, t.announced_category

-- setTemplateStatus
update whatsapp_templates t
set status = $1, status_at = to_timestamp($2), updated_at = to_timestamp($3)
where t.team_id = $4
  and t.id = $5
returning t.team_id, t.id, t.name, t.language, t.category, t.status, t.definition, t.slots, t.url_buttons,
  t.parts, nullif(t.unsupported, $6) as unsupported, t.fault, t.created_at, t.updated_at, t.synced_at,
  t.quality, t.announced_category

-- storeTemplateFacts
with meant as (
  select t.team_id, t.id, t.category as was, $1::text is not null
    and coalesce(t.category_at < to_timestamp($2), true) as changes
  from unnest($3::text[], $4::text[], $5::text[], $6::text[]) as c (name, language, account_id, number)
  join whatsapp_templates t on t.name = c.name
    and replace(t.language, '-', '_') = c.language
    and not team_id in (
    select id
    from teams
    where test
  )
    and exists (
    select
    from teams o
    left join whatsapp_numbers n on n.name = coalesce(o.whatsapp_number, 'default')
    where o.id = t.team_id
      and (c.number is null or n.phone_number_id = c.number)
      and case when n.account_id is not null then n.account_id = c.account_id else not exists (
      select from whatsapp_numbers where account_id = c.account_id
    ) end
  )
  order by t.team_id, t.id
  for no key update of t
)
update whatsapp_templates t
set category = case when m.changes then $7 else t.category end, category_at = case
  when m.changes then to_timestamp($8) else t.category_at end, announced_category = case
  when m.changes then null else coalesce($9, t.announced_category) end, quality = coalesce($10, t.quality),
  updated_at = to_timestamp($11)
from meant m
where t.team_id = m.team_id
  and t.id = m.id
returning t.team_id, t.id, t.name, t.language, t.category, m.was, (exists (
  select
  from webhook_endpoints w
  where w.team_id = t.team_id
    and (w.state = 'enabled' or w.disabled_at > now() - $12 * interval '1 day')
)) as has_listeners

-- teamsToSync
select o.id as team_id
from teams o
join whatsapp_numbers n on n.name = coalesce(o.whatsapp_number, 'default')
where n.account_id is not null
  and not o.test
  and exists (
  select
  from whatsapp_templates
  where team_id = o.id
)
order by o.id

-- teamsWithTemplates
select distinct t.team_id, c.name, c.language, c.account_id, c.number
from unnest($1::text[], $2::text[], $3::text[], $4::text[]) as c (name, language, account_id, number)
join whatsapp_templates t on t.name = c.name
  and replace(t.language, '-', '_') = c.language
  and not team_id in (
  select id
  from teams
  where test
)
  and exists (
  select
  from teams o
  left join whatsapp_numbers n on n.name = coalesce(o.whatsapp_number, 'default')
  where o.id = t.team_id
    and (c.number is null or n.phone_number_id = c.number)
    and case when n.account_id is not null then n.account_id = c.account_id else not exists (
    select from whatsapp_numbers where account_id = c.account_id
  ) end
)

-- templatesByIds
select t.team_id, t.id, t.status, t.slots, t.parts, nullif(t.unsupported, $1) as unsupported, t.account_id, (
  select account_id
  from whatsapp_numbers
  where name = 'default'
) as default_account
from unnest($2::uuid[], $3::uuid[]) as w (team_id, id)
join whatsapp_templates t on t.team_id = w.team_id
  and t.id = w.id

-- whatsappTemplatesOfTeam
select t.team_id, t.id, t.name, t.language, t.category, t.status, t.definition, t.slots, t.url_buttons,
  t.parts, nullif(t.unsupported, $1) as unsupported, t.fault, t.created_at, t.updated_at, t.synced_at,
  t.quality, t.announced_category
from whatsapp_templates t
where t.team_id = $2
order by t.id
