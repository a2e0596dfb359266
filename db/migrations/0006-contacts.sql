-- Contacts, the topics they can be subscribed to, and bulk upserts of contacts.
create table topics (
  team_id uuid not null references teams (id) on delete cascade,
  id uuid not null,
  name text not null,
  created_at timestamptz not null,
  primary key (team_id, id),
  unique (team_id, name)
);

create table contacts (
  team_id uuid not null references teams (id) on delete cascade,
  id uuid not null,
  email text not null,
  -- The email in lower case with an ASCII domain: what makes two spellings one contact (decisions: identity).
  identity text not null,
  status text not null check (status in ('subscribed', 'unsubscribed', 'bounced', 'complained')),
  -- What a delivery report once found; outlives an unsubscribe (decisions: unsubscribe).
  suppression text check (suppression in ('bounced', 'complained')),
  -- What suppressed it, when, and by which email and report: {"what", "at", "email_id", "report_id", "detail"}.
  suppression_cause jsonb check (suppression_cause is null or suppression is not null),
  -- Whether soft bounces are all that it is suppressed for: then a later delivery ends it.
  suppressed_softly boolean not null default false,
  -- What the status goes back to when the suppression ends.
  status_before text check (status_before in ('subscribed', 'unsubscribed')),
  -- When a person last lifted a suppression: soft bounces before that no longer count.
  lifted_at timestamptz,
  properties jsonb not null,
  topic_ids uuid[] not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (team_id, id),
  unique (team_id, identity),
  check (status not in ('bounced', 'complained') or suppression is not null)
-- Its rows are updated in place, by bulk calls and reports: room for that on each page.
) with (fillfactor = 85);
-- The list, newest first. With what its filters look at, so that the rows a deep page skips are never read.
create index contacts_newest on contacts (team_id, created_at desc, id desc) include (status, email);
-- Rare substrings, without regard to case.
create extension if not exists pg_trgm;
create index contacts_email_substring on contacts using gin (email gin_trgm_ops);
-- The list by a topic that few have. Contacts without topics are in no entry: a bulk call's new ones cost it nothing.
create index contacts_topics on contacts using gin (topic_ids) where topic_ids <> '{}';
-- The list by any other status than the one nearly all have.
create index contacts_set_apart on contacts (team_id, status, created_at desc, id desc) where status <> 'subscribed';
-- Few at any time: those that a mail which stays undisputed may bring back.
create index contacts_suppressed_softly on contacts (team_id, id) where suppressed_softly;

-- Contacts imported from files, for a week: bulk upserts carry out a thousand records each.
create table contact_imports (
  team_id uuid not null references teams (id) on delete cascade,
  id uuid not null,
  file_name text not null,
  -- The file as it came: what was refused of it can be had again.
  source text not null,
  records integer not null,
  created_by text not null,
  created_at timestamptz not null,
  primary key (team_id, id)
);

-- Contact bulk upserts: a call as it came, and what a worker made of it.
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
  -- Set for a part of an import: which, and the place of its first record.
  import_id uuid,
  first_record integer,
  primary key (team_id, id),
  foreign key (team_id, import_id) references contact_imports (team_id, id) on delete cascade,
  check ((body is null) = (finished_at is not null)),
  check ((result is null) = (finished_at is null))
);
-- Lives for a second: not worth the time to compress.
alter table contact_upserts alter column body set storage external;
create index contact_upserts_created on contact_upserts (created_at);
create index contact_upserts_import on contact_upserts (team_id, import_id) where import_id is not null;
