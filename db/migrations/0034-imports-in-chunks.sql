-- Imports are read by workers, in slices: a file lies in chunks of its bytes, in UTF-8.
create table contact_import_chunks (
  team_id uuid not null,
  import_id uuid not null,
  position integer not null,
  bytes bytea not null,
  primary key (team_id, import_id, position),
  foreign key (team_id, import_id) references contact_imports (team_id, id) on delete cascade
);
insert into contact_import_chunks (team_id, import_id, position, bytes)
select i.team_id, i.id, part, substring(f.bytes from part * 131072 + 1 for 131072)
from contact_imports i
cross join lateral (select convert_to(i.source, 'UTF8') as bytes) f
cross join lateral generate_series(0, (length(f.bytes) - 1) / 131072) as part;
-- Kept for processes of the version before, which may still store into it while they are replaced.
alter table contact_imports alter column source drop not null;
update contact_imports set source = null;
