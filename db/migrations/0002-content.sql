-- Content: templates with their immutable versions, and the bytes of attachments.

create table templates (
  team_id uuid not null references teams (id) on delete cascade,
  id uuid not null,
  name text not null,
  -- The version in use.
  version_id uuid not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (team_id, id)
);
create unique index templates_name on templates (team_id, name);

-- An email keeps the version that it was accepted with, and is rendered from it for ever, even when the template is
-- gone: so no reference to templates.
create table template_versions (
  team_id uuid not null references teams (id) on delete cascade,
  id uuid not null,
  template_id uuid not null,
  html text not null,
  body_text text not null,
  -- Slots that the html or the text declares, in order of first appearance.
  slots text[] not null,
  -- Whether its emails carry List-Unsubscribe headers; then unsubscribe_url is one of its slots.
  list_unsubscribe boolean not null default false,
  created_at timestamptz not null,
  created_by text not null,
  primary key (team_id, id)
);
create index template_versions_template on template_versions (team_id, template_id, id);

-- What people write and look at before it is published as a version.
create table template_drafts (
  team_id uuid not null,
  template_id uuid not null,
  -- A new one at each save: people save and publish what they have seen, not what a colleague wrote meanwhile.
  id uuid not null,
  html text not null,
  body_text text not null,
  slots text[] not null,
  -- The version that was in use when the draft was begun.
  version_id uuid not null,
  saved_by text not null,
  saved_at timestamptz not null,
  primary key (team_id, template_id),
  foreign key (team_id, template_id) references templates (team_id, id) on delete cascade
);

-- Bytes, stored once for each team and content. A file is `loading` until the call that brings it is accepted; only
-- `ready` ones count towards the team's storage. An unused one becomes `orphaned` under the team's account lock, and is
-- deleted after that.
create table files (
  team_id uuid not null,
  id uuid not null,
  -- Known once all of it has come.
  sha256 bytea check (length(sha256) = 32),
  size bigint not null default 0 check (size >= 0),
  state text not null default 'loading' check (state in ('loading', 'ready', 'orphaned')),
  created_at timestamptz not null,
  -- Written at each use when it is older than an hour: a collector that looked before the use does not take the file.
  last_used_at timestamptz not null,
  -- Until when uploads keep it: the collector's index has no others.
  kept_until timestamptz,
  primary key (team_id, id),
  check (state = 'loading' or sha256 is not null)
);
create unique index files_content on files (team_id, sha256) where state = 'ready';
-- For the collector: what broken calls have left, then what was not used for longest.
create index files_not_ready on files (created_at) where state <> 'ready';
create index files_unused on files (last_used_at) where state = 'ready' and kept_until is null;
create index files_kept on files (kept_until) where kept_until is not null;

-- Most attachments are compressed already: storage external tries no more, and cuts a chunk without unpacking it.
create table file_chunks (
  team_id uuid not null,
  file_id uuid not null,
  part integer not null,
  bytes bytea not null,
  primary key (team_id, file_id, part),
  foreign key (team_id, file_id) references files (team_id, id) on delete cascade
);
alter table file_chunks alter column bytes set storage external;

-- What POST /v1/attachments has taken, until it expires.
create table uploads (
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
create index uploads_expiry on uploads (expires_at);
