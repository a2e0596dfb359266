-- How people get in to the dashboard, and that they are in: one-time links, who asked for one, who they are at the
-- OpenID provider, browser sessions. Directories, read before a team is known; only digests of secrets are stored.
create table login_links (
  hash bytea primary key,
  user_id uuid not null references users (id) on delete cascade,
  created_at timestamptz not null,
  expires_at timestamptz not null
);
create index login_links_user on login_links (user_id);

-- Who asked for a link by mail, known or not: what the limits an hour count.
create table login_requests (
  id uuid primary key,
  identity text not null,
  origin text not null,
  created_at timestamptz not null
);
create index login_requests_identity on login_requests (identity, created_at);
create index login_requests_origin on login_requests (origin, created_at);

create table openid_identities (
  issuer text not null,
  subject text not null,
  user_id uuid not null references users (id) on delete cascade,
  created_at timestamptz not null,
  primary key (issuer, subject),
  unique (issuer, user_id)
);

create table dashboard_sessions (
  id uuid primary key,
  hash bytea not null unique,
  user_id uuid not null references users (id) on delete cascade,
  user_agent text not null,
  created_at timestamptz not null,
  -- To the minute: when it was used last.
  seen_at timestamptz not null,
  expires_at timestamptz not null
);
create index dashboard_sessions_user on dashboard_sessions (user_id);
