-- Audience: contacts, the topics they are subscribed to, how they come in by the thousand, and what stays of a person
-- whose data was erased.

create extension if not exists pg_trgm;

create table topics (
  team_id uuid not null references teams (id) on delete cascade,
  id uuid not null,
  name text not null,
  created_at timestamptz not null,
  primary key (team_id, id),
  unique (team_id, name)
);

-- Updated in place by bulk calls and reports: the fillfactor leaves room for that on each page.
create table contacts (
  team_id uuid not null references teams (id) on delete cascade,
  id uuid not null,
  email text not null,
  -- The email in lower case with an ASCII domain: what makes two spellings one contact.
  identity text not null,
  -- Whether the address has another form in ASCII. A column, since the planner has no statistics of the expression.
  has_two_forms boolean not null generated always as (identity <> lower(email)) stored,
  status text not null check (status in ('subscribed', 'unsubscribed', 'bounced', 'complained')),
  -- What a delivery report once found; outlives an unsubscribe.
  suppression text check (suppression in ('bounced', 'complained')),
  -- What suppressed it, when, and by which email and report: {"what", "at", "email_id", "report_id", "detail"}.
  suppression_cause json check (suppression_cause is null or suppression is not null),
  -- Whether soft bounces are all that it is suppressed for: then a later delivery ends it.
  suppressed_softly boolean not null default false,
  -- What the status goes back to when the suppression ends.
  status_before text check (status_before in ('subscribed', 'unsubscribed')),
  -- When a person last lifted a suppression: soft bounces before that no longer count.
  lifted_at timestamptz,
  properties jsonb not null,
  topic_ids uuid[] not null,
  -- What was left by a link of an email or by the one-shot unsubscribe.
  left_topic_ids uuid[] not null default '{}',
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (team_id, id),
  unique (team_id, identity),
  check (status not in ('bounced', 'complained') or suppression is not null),
  check (not suppressed_softly or suppression is not distinct from 'bounced')
) with (fillfactor = 85);
-- The list, newest first. With what its filters look at, so that the rows a deep page skips are never read.
create index contacts_newest on contacts (team_id, created_at desc, id desc) include (status, email);
-- Rare substrings, without regard to case.
create index contacts_email_substring on contacts using gin (email gin_trgm_ops);
-- The few with another form, by their team; with what a search looks at.
create index contacts_two_forms on contacts (team_id, id) include (identity) where has_two_forms;
-- The list by a topic that few have. Contacts without topics have no entry: a bulk call's new ones cost it nothing.
create index contacts_topics on contacts using gin (topic_ids) where topic_ids <> '{}';
-- The list by any status but the one that nearly all have.
create index contacts_set_apart on contacts (team_id, status, created_at desc, id desc) where status <> 'subscribed';
-- Few at any time: those that an email which stays undisputed may bring back.
create index contacts_suppressed_softly on contacts (team_id, id) where suppressed_softly;

-- An address that marketing must not mail though its contact is gone: a keyed hash, no address.
create table erased_contacts (
  team_id uuid not null references teams (id) on delete cascade,
  hash bytea not null,
  -- What a contact created again under the address starts as.
  status text not null,
  suppression text check (suppression in ('bounced', 'complained')),
  left_topic_ids uuid[] not null default '{}',
  erased_at timestamptz not null,
  primary key (team_id, hash),
  check (status in ('unsubscribed', 'bounced', 'complained') or status = 'subscribed' and left_topic_ids <> '{}'),
  check (status not in ('bounced', 'complained') or suppression is not null)
);

-- How many contacts have each topic: a count is the sum of its rows. Triggers add rows for whatever moves contacts, so
-- that nobody waits for a counter and nothing is counted again; a scheduled job folds them into one.
create table topic_counts (
  team_id uuid not null,
  topic_id uuid not null,
  id bigint generated always as identity,
  count bigint not null,
  -- Whether it is the sum of the changes until a moment; the others wait for the job.
  folded boolean not null default false,
  primary key (team_id, topic_id, id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
create index topic_counts_unfolded on topic_counts (team_id, topic_id) where not folded;

create function count_topics() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    insert into topic_counts (team_id, topic_id, count)
    select team_id, topic_id, count(*) from became cross join lateral unnest(topic_ids) topic_id
    group by team_id, topic_id;
  elsif tg_op = 'DELETE' then
    insert into topic_counts (team_id, topic_id, count)
    select team_id, topic_id, -count(*) from was cross join lateral unnest(topic_ids) topic_id
    group by team_id, topic_id;
  else
    insert into topic_counts (team_id, topic_id, count)
    select team_id, topic_id, sum(n) from (
      select team_id, unnest(topic_ids) as topic_id, 1 as n from became
      union all
      select team_id, unnest(topic_ids), -1 from was) delta
    group by team_id, topic_id having sum(n) <> 0;
  end if;
  return null;
end $$;

create trigger count_topics_added after insert on contacts
  referencing new table as became for each statement execute function count_topics();
create trigger count_topics_removed after delete on contacts
  referencing old table as was for each statement execute function count_topics();
create trigger count_topics_changed after update on contacts
  referencing old table as was new table as became for each statement execute function count_topics();

-- Contacts imported from files, kept for a week: each file is read to its end, then stored a slice at a time.
create table contact_imports (
  team_id uuid not null references teams (id) on delete cascade,
  id uuid not null,
  file_name text not null,
  encoding text,
  -- Those that were read so far; of a draft all that it has.
  records integer not null,
  -- What came of the records that were stored so far: each is one of these.
  created integer not null default 0,
  updated integer not null default 0,
  repeated integer not null default 0,
  refused integer not null default 0,
  -- An uploaded file waits as a draft until a person has said what its columns become.
  draft boolean not null default false,
  mapping jsonb not null,
  created_by text not null,
  created_at timestamptz not null,
  primary key (team_id, id)
);

-- Its file, in UTF-8.
create table contact_import_chunks (
  team_id uuid not null,
  import_id uuid not null,
  position integer not null,
  bytes bytea not null,
  primary key (team_id, import_id, position),
  foreign key (team_id, import_id) references contact_imports (team_id, id) on delete cascade
);

-- What came of its slices.
create table contact_import_slices (
  team_id uuid not null,
  import_id uuid not null,
  -- The place of its first record among the records, and where the file is read for it; null: from the beginning.
  first_record integer not null,
  place json,
  -- The contacts that it has stored: what a later slice stores of them is repeated.
  contact_ids uuid[] not null,
  -- [{"at": place in the slice, "row": as a spreadsheet counts, "message", "column", "value"}, …]; null: none.
  refused json,
  primary key (team_id, import_id, first_record),
  foreign key (team_id, import_id) references contact_imports (team_id, id) on delete cascade
);

-- A bulk call as it came, and what a worker made of it. It lives for a second: not worth the time to compress.
create table contact_upserts (
  team_id uuid not null references teams (id) on delete cascade,
  id uuid not null,
  -- The request's body. Text, not json: one item may hold what json types refuse (NUL, lone surrogates, bottomless
  -- nesting) and is refused alone. Dropped once it is done.
  body text,
  created_at timestamptz not null,
  finished_at timestamptz,
  -- {"items": [id or {code, message}, …]}, or {"refusal": {code, message}} for the whole call.
  result json,
  primary key (team_id, id),
  check ((body is null) = (finished_at is not null)),
  check ((result is null) = (finished_at is null))
);
alter table contact_upserts alter column body set storage external;
create index contact_upserts_created on contact_upserts (created_at);
