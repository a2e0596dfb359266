-- Contact bulk upserts: a call as it came, and what a worker made of it. Indexes for the contact list.
create table contact_upserts (
  team_id uuid not null references teams (id) on delete cascade,
  id uuid not null,
  -- The request's body as it came. Text, not json: PostgreSQL must not look inside, since one item may hold what
  -- json types refuse (NUL, lone surrogates, bottomless nesting) and be refused alone. Dropped once it is done.
  body text,
  created_at timestamptz not null,
  finished_at timestamptz,
  -- {"items": [id or {code, message}, …]}, or {"refusal": {code, message}} for the whole call.
  result json,
  primary key (team_id, id),
  check ((body is null) = (finished_at is not null)),
  check ((result is null) = (finished_at is null))
);
-- Lives for a second: not worth the time to compress.
alter table contact_upserts alter column body set storage external;
create index contact_upserts_created on contact_upserts (created_at);

-- The list, newest first. With what its filters look at, so that the rows a deep page skips are never read.
create index contacts_newest on contacts (team_id, created_at desc, id desc) include (status, email);
-- Rare substrings, without regard to case.
create extension if not exists pg_trgm;
create index contacts_email_substring on contacts using gin (email gin_trgm_ops);
