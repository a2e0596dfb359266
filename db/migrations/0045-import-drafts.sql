-- An uploaded file waits as a draft until a person has said what its columns become. Imports of before have no mapping:
-- theirs goes by the names of their columns.
alter table contact_imports
  add column draft boolean not null default false,
  add column mapping jsonb,
  add column encoding text;
