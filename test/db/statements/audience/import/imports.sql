-- addSlice
with before as (
  select count(*)::int as seen
  from unnest($1::uuid[]) id
  where id in (
    select unnest(contact_ids)
    from contact_import_slices
    where team_id = $2
      and import_id = $3
  )
), added as (
  insert into contact_import_slices (team_id, import_id, first_record, place, contact_ids, refused)
  values ($4, $5, $6, $7, $8::uuid[], $9)
)
update contact_imports
set created = created + $10, updated = updated + $11 - seen, repeated = repeated + $12 + seen,
  refused = refused + $13
from before
where team_id = $14
  and id = $15

-- countDrafts
select count(*)::int as count
from contact_imports
where team_id = $1
  and draft

-- deleteImportDraft
delete from contact_imports
where team_id = $1
  and id = $2
  and draft

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

-- endDraft
update contact_imports
set draft = false, records = 0
where team_id = $1
  and id = $2
  and draft
returning mapping

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

-- importBytes
select bytes
from contact_import_chunks
where team_id = $1
  and import_id = $2
  and position between $3 and $4
order by position

-- importFileNames
select id, file_name
from contact_imports
where team_id = any($1::uuid[])
  and id = any($2::uuid[])

-- importLength
select coalesce(sum(octet_length(bytes)), 0)::int as count
from contact_import_chunks
where team_id = $1
  and import_id = $2

-- importsOfTeam
select i.id, i.file_name, i.records, i.created_by, i.created_at, i.draft, i.mapping, i.encoding, i.created,
  i.updated, i.repeated, i.refused, i.created + i.updated + i.repeated + i.refused as done, j.fault,
  j.id is not null
  and j.finished_at is null
  and j.total is null as reading
from contact_imports i
left join background_jobs j on j.id = i.id
where i.team_id = $1
  and (i.mapping -> 'suppress' = 'null') = $2
order by i.id desc
limit $3

-- insertImport
insert into contact_import_chunks (team_id, import_id, position, bytes)
values ($1, $2, $3, $4)

-- insertImport
insert into contact_imports (team_id, id, file_name, records, created_by, created_at, draft, mapping,
  encoding)
values ($1, $2, $3, $4, $5, to_timestamp($6), true, $7, $8)

-- lastMapping
select mapping
from contact_imports
where team_id = $1
  and not draft
  and mapping -> 'names' = $2::jsonb
  and (mapping -> 'suppress' = 'null') = $3
order by id desc
limit 1

-- mapDraft
update contact_imports
set mapping = $1
where team_id = $2
  and id = $3
  and draft

-- readMapping
select mapping
from contact_imports
where team_id = $1
  and id = $2

-- refusingSlices
select first_record, place, refused
from contact_import_slices
where team_id = $1
  and import_id = $2
  and first_record > $3
  and refused is not null
order by first_record
limit $4

-- setRecords
update contact_imports
set records = $1
where team_id = $2
  and id = $3
