-- deleteImports
delete from contact_imports i
where created_at < to_timestamp($1)
  and not exists (
  select
  from background_jobs j
  where j.id = i.id
    and j.finished_at is null
)
  or draft
  and created_at < to_timestamp($2)

-- importById
select i.id, i.file_name, i.records, i.created_by, i.created_at, i.draft, i.mapping, i.encoding, i.created,
  i.updated, i.repeated, i.refused, i.created + i.updated + i.repeated + i.refused as done, j.fault,
  j.id is not null
  and j.finished_at is null
  and j.total is null as reading
from contact_imports i
left join background_jobs j on j.id = i.id
where i.team_id = $1
  and i.id = $2

-- importsOfTeam
select i.id, i.file_name, i.records, i.created_by, i.created_at, i.draft, i.mapping, i.encoding, i.created,
  i.updated, i.repeated, i.refused, i.created + i.updated + i.repeated + i.refused as done, j.fault,
  j.id is not null
  and j.finished_at is null
  and j.total is null as reading
from contact_imports i
left join background_jobs j on j.id = i.id
where i.team_id = $1
order by i.id desc
limit $2
