-- deleteTemplate
delete from templates
where team_id = $1
  and id = $2
returning id, name

-- insertTemplate
insert into templates (team_id, id, name, version_id, created_at, updated_at)
values ($1, $2, $3, $4, to_timestamp($5), to_timestamp($6))
on conflict (team_id, name) do nothing

-- insertVersion
insert into template_versions (team_id, id, template_id, html, body_text, slots, list_unsubscribe, created_by,
  created_at, keeps_equals)
values ($1, $2, $3, $4, $5, $6::text[], $7, $8, to_timestamp($9), true)

-- lockCurrentVersion
select t.name, v.team_id, v.id, v.template_id, v.html, v.body_text, v.slots, v.list_unsubscribe,
  v.keeps_equals
from templates t
join template_versions v on v.team_id = t.team_id
  and v.id = t.version_id
where t.team_id = $1
  and t.id = $2
for update of t

-- renameTemplateRow
update templates
set name = $1
where team_id = $2
  and id = $3
  and not exists (
  select
  from templates other
  where other.team_id = $4
    and other.name = $5
    and other.id <> $6
)
returning id, name

-- setCurrentVersion
update templates
set version_id = $1, updated_at = to_timestamp($2)
where team_id = $3
  and id = $4

-- templateById
select t.id, t.name, t.version_id, v.slots, v.list_unsubscribe, v.html, v.body_text as text, v.keeps_equals,
  t.created_at, t.updated_at
from templates t
join template_versions v on v.team_id = t.team_id
  and v.id = t.version_id
where t.team_id = $1
  and t.id = $2

-- templateName
select name
from templates
where team_id = $1
  and id = $2

-- templatesOfTeam
select t.id, t.name, t.version_id, v.slots, v.list_unsubscribe, t.created_at, t.updated_at
from templates t
join template_versions v on v.team_id = t.team_id
  and v.id = t.version_id
where t.team_id = $1
order by t.id

-- versionsByIds
select team_id, id, template_id, html, body_text, slots, list_unsubscribe, keeps_equals
from template_versions
where (team_id, id) in (
  select *
  from unnest($1::uuid[], $2::uuid[]) as ref (team_id, id)
)

-- versionsOfTemplate
select id, row_number() over (order by id) as number, slots, created_at, created_by
from template_versions
where team_id = $1
  and template_id = $2
order by id desc
limit $3

-- versionsToCompare
select v.id, v.slots, v.created_at, v.created_by, v.html, v.body_text, (
  select count(*)
  from template_versions o
  where o.team_id = v.team_id
    and o.template_id = v.template_id
    and o.id <= v.id
) as number
from template_versions v
where v.team_id = $1
  and v.template_id = $2
  and v.id = any($3::uuid[])
