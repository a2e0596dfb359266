-- Attachments: their bytes, stored once for each team and content, and what refers to them.
-- A file is `loading` until the call that brings it is accepted; only `ready` ones count towards the team's storage.
-- One that nobody needs any more is `doomed` first, under the team's account lock, and deleted after that.
create table files (
  team_id uuid not null,
  id uuid not null,
  -- Known once all of it has come.
  sha256 bytea check (length(sha256) = 32),
  size bigint not null default 0 check (size >= 0),
  state text not null default 'loading' check (state in ('loading', 'ready', 'doomed')),
  created_at timestamptz not null default now(),
  -- Written at each use when it is older than an hour: a collector that looked before the use does not take the file.
  last_used_at timestamptz not null default now(),
  primary key (team_id, id),
  check (state = 'loading' or sha256 is not null)
);
create unique index files_content on files (team_id, sha256) where state = 'ready';
-- What the collector looks through: what is left over from broken calls, then what was not used for longest.
create index files_left on files (created_at) where state <> 'ready';
create index files_unused on files (last_used_at) where state = 'ready';

create table file_chunks (
  team_id uuid not null,
  file_id uuid not null,
  part integer not null,
  bytes bytea not null,
  primary key (team_id, file_id, part),
  foreign key (team_id, file_id) references files (team_id, id) on delete cascade
);
-- What people attach is compressed already, most of it: neither try that, nor cut a chunk out of a compressed whole.
alter table file_chunks alter column bytes set storage external;

-- Which emails need which contents, for the collector. Names and types are in the email's row.
create table email_files (
  team_id uuid not null,
  email_id uuid not null,
  sha256 bytea not null,
  primary key (team_id, email_id, sha256),
  foreign key (team_id, email_id) references emails (team_id, id) on delete cascade
);
create index email_files_content on email_files (team_id, sha256);

-- Uploads, until they expire.
create table attachments (
  team_id uuid not null,
  id uuid not null,
  sha256 bytea not null check (length(sha256) = 32),
  filename text not null,
  content_type text not null,
  size bigint not null check (size > 0),
  created_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (team_id, id)
);
create index attachments_content on attachments (team_id, sha256);
create index attachments_expiry on attachments (expires_at);

-- What the email carries: [{filename, content_type, size, content_id, sha256}]; null when nothing.
alter table emails add column attachments json;
-- Distinct bytes of ready files.
alter table allowances add column storage_used bigint not null default 0 check (storage_used >= 0);
-- In gigabytes; fractions are allowed. null: the plan's.
alter table subscriptions add column storage_gb double precision check (storage_gb >= 0);
