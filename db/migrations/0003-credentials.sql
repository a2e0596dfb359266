-- API keys, people and their session tokens. Directories: a credential is read before its team is known.
-- Only SHA-256 digests are stored (decisions: key format).
create table api_keys (
  id uuid primary key,
  team_id uuid not null references teams (id) on delete cascade,
  name text not null,
  prefix text not null,
  hash bytea not null unique,
  scopes text[] not null,
  domain text,
  created_at timestamptz not null,
  expires_at timestamptz,
  revoked_at timestamptz,
  -- The hour of its last use, written once an hour: a request should not cost a write.
  last_used_at timestamptz
);
create index api_keys_team on api_keys (team_id);

create table users (
  id uuid primary key,
  email text not null,
  identity text not null unique,
  -- Runs the service: sees every team and the operator's pages.
  operator boolean not null default false,
  created_at timestamptz not null
);

create table memberships (
  team_id uuid not null references teams (id) on delete cascade,
  user_id uuid not null references users (id) on delete cascade,
  -- What the person may do on the dashboard; a session token acts for its team whatever the role.
  role text not null default 'viewer' check (role in ('viewer', 'editor', 'owner')),
  primary key (team_id, user_id)
);
create index memberships_user on memberships (user_id);

create table sessions (
  id uuid primary key,
  team_id uuid not null references teams (id) on delete cascade,
  user_id uuid references users (id) on delete cascade,
  hash bytea not null unique,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  revoked_at timestamptz
);
create index sessions_team on sessions (team_id);
create index sessions_expiry on sessions (expires_at);
