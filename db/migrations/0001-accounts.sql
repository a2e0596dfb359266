-- In all six files a column is json where its value comes back whole, in the order and spelling it was written in, and
-- jsonb where statements look inside of it (DECISIONS: JSON columns).
--
-- Accounts: the plans there are, the teams, what each has agreed and used, who may act for them, their sending domains,
-- and who changed what. Keys begin with team_id wherever a team owns the row; api_keys, sessions, users, plans and
-- what people sign in with are directories, read before the team is known.

-- The one clock for rate, quota, periods and pauses: no process's own clock counts. Tests replace it.
create function service_time() returns timestamptz language sql volatile as 'select clock_timestamp()';

-- A known text sealed with SECRET_KEY: a process that cannot open it was given another key. One row for the service.
create table secret_canary (
  one boolean primary key default true check (one),
  sealed bytea not null
);

-- The catalog: what a team may subscribe to, with its prices and its words in each language. The json columns print
-- as they were loaded.
create table plans (
  key text primary key,
  position integer not null unique deferrable initially deferred,
  product text not null check (product in ('transactional', 'marketing')),
  kind text not null check (kind in ('free', 'paid', 'custom')),
  -- Localized words: {"en": …, "fr": …}.
  name json not null,
  blurb json not null,
  cta json not null,
  benefits json not null,
  featured boolean not null default false,
  email_limit integer check (email_limit >= 0),
  contact_limit integer check (contact_limit >= 0),
  whatsapp_limit integer check (whatsapp_limit >= 0),
  domains_limit integer check (domains_limit >= 0),
  storage_gb integer check (storage_gb >= 0),
  send_rate_per_second integer check (send_rate_per_second > 0),
  overage_per_1000_cents integer check (overage_per_1000_cents >= 0),
  tiers json,
  contacts_tiers json
);

create table teams (
  id uuid primary key,
  name text not null,
  created_at timestamptz not null,
  -- For its whole life: everything as live, but its messages go to the simulator alone (DECISIONS: Test teams).
  test boolean not null default false,
  -- Since then its credentials are refused and its queued messages wait; null while it is in good standing.
  suspended_at timestamptz,
  -- When the last suspension ended: what had waited by then goes out at the next sweep.
  resumed_at timestamptz,
  -- The properties that its list of contacts shows as columns; null: those that most of the listed contacts have.
  contact_columns text[]
);
create index teams_test on teams (id) where test;

-- What a team has agreed. Figures set here override the plan's; no period means the calendar month.
create table subscriptions (
  team_id uuid primary key references teams (id) on delete cascade,
  plan_key text not null references plans (key),
  email_limit integer check (email_limit >= 0),
  contact_limit integer check (contact_limit >= 0),
  whatsapp_limit integer check (whatsapp_limit >= 0),
  send_rate_per_second double precision check (send_rate_per_second > 0),
  -- In gigabytes; fractions are allowed.
  storage_gb double precision check (storage_gb >= 0),
  period_start timestamptz,
  period_end timestamptz,
  check ((period_start is null) = (period_end is null)),
  check (period_start < period_end)
);

-- A team's subscription and plan as committed by now, however long the calling statement has waited for a lock: a
-- volatile function sees what has been committed since. Whole rows, so that new columns of both come along.
create function subscription_now(of_team uuid) returns table (subscription subscriptions, plan plans)
  language plpgsql volatile as $$
begin
  return query select s, p from subscriptions s join plans p on p.key = s.plan_key where s.team_id = of_team;
end $$;

-- What a team has used. Locked first by whatever charges the team, so that accepts of one team take turns. Half-empty
-- pages keep its many updates within the page (HOT).
create table allowances (
  team_id uuid primary key references teams (id) on delete cascade,
  period_start timestamptz not null,
  period_end timestamptz not null,
  emails_used integer not null default 0 check (emails_used >= 0),
  whatsapp_used integer not null default 0 check (whatsapp_used >= 0),
  contacts_used integer not null default 0 check (contacts_used >= 0),
  -- Distinct bytes of ready files.
  storage_used bigint not null default 0 check (storage_used >= 0),
  -- The token bucket of the send rate.
  bucket_tokens double precision not null,
  refilled_at timestamptz not null,
  -- The places of the team's last jobs in the fair queues (db/queue/fair-queue.ts).
  email_place bigint not null default 0,
  email_batch_place bigint not null default 0,
  whatsapp_place bigint not null default 0,
  whatsapp_batch_place bigint not null default 0,
  broadcast_place bigint not null default 0
) with (fillfactor = 50);

-- Credentials of /v1. Only SHA-256 digests of keys and tokens are stored, here and below.
create table api_keys (
  id uuid primary key,
  team_id uuid not null references teams (id) on delete cascade,
  name text not null,
  prefix text not null,
  hash bytea not null unique,
  scopes text[] not null,
  -- The only domain it may send from; null: any of the team's.
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
  -- What the person may do on the dashboard, and with the session tokens that they make there.
  role text not null default 'viewer' check (role in ('viewer', 'editor', 'owner')),
  -- The address as this team wrote it: how others write it would show that the person is known elsewhere.
  email text,
  primary key (team_id, user_id)
);
create index memberships_user on memberships (user_id);

-- Session tokens for /v1.
create table sessions (
  id uuid primary key,
  team_id uuid not null references teams (id) on delete cascade,
  user_id uuid references users (id) on delete cascade,
  hash bytea not null unique,
  -- What its person might do when they made it: it does what both this and the membership of now allow. Null: an
  -- operator made it, and it acts for the team whatever the role.
  role text check (role in ('viewer', 'editor', 'owner')),
  created_at timestamptz not null,
  expires_at timestamptz not null,
  revoked_at timestamptz,
  check (role is null or user_id is not null)
);
create index sessions_team on sessions (team_id);
create index sessions_expiry on sessions (expires_at);

-- Ways into the dashboard: one-time links, requests for one, identities at the OpenID provider.
create table login_links (
  hash bytea primary key,
  user_id uuid not null references users (id) on delete cascade,
  -- A link that somebody else has seen opens this team alone; null: all that the person has.
  team_id uuid references teams (id) on delete cascade,
  -- An invitation lives for days: it holds at most the role that its person had when it was made; null: what they have.
  role text check (role in ('viewer', 'editor', 'owner')),
  created_at timestamptz not null,
  expires_at timestamptz not null
);
create index login_links_user on login_links (user_id);

-- Requests for a link by mail, of known people and others: what the hourly limits count.
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

-- Browser sessions. What a session holds is decided when it begins, so that one seized earlier never grows: a seat for
-- each team with the role of then, and the operator's flag of then.
create table dashboard_sessions (
  id uuid primary key,
  hash bytea not null unique,
  user_id uuid not null references users (id) on delete cascade,
  -- The one team of a session that began by a link for it; null: all that the person had.
  team_id uuid references teams (id) on delete cascade,
  operator boolean not null default false,
  user_agent text not null,
  created_at timestamptz not null,
  -- When it was last used, to the minute.
  seen_at timestamptz not null,
  expires_at timestamptz not null
);
create index dashboard_sessions_user on dashboard_sessions (user_id);

create table dashboard_seats (
  team_id uuid not null,
  user_id uuid not null,
  session_id uuid not null references dashboard_sessions (id) on delete cascade,
  role text not null check (role in ('viewer', 'editor', 'owner')),
  -- When this team's pages were last used, to the minute.
  seen_at timestamptz,
  primary key (team_id, user_id, session_id),
  -- A person who leaves a team loses its pages with the membership, and a later membership does not restore them.
  foreign key (team_id, user_id) references memberships (team_id, user_id) on delete cascade
);
create index dashboard_seats_session on dashboard_seats (session_id);

-- Sending domains, each with its DKIM key pair; the private half is sealed with SECRET_KEY.
create table domains (
  team_id uuid not null references teams (id) on delete cascade,
  id uuid not null,
  name text not null,
  status text not null check (status in ('pending', 'verified')),
  dkim_selector text not null,
  dkim_public_key text not null,
  dkim_private_key bytea not null,
  -- The key that replaces it once its record is published: all three, or none.
  next_dkim_selector text,
  next_dkim_public_key text,
  next_dkim_private_key bytea,
  created_at timestamptz not null,
  verified_at timestamptz,
  -- When its key was last found in DNS. Null for one taken at the operator's word, which is not missed before.
  found_at timestamptz,
  -- The nightly checks: the last one, whatever it saw; since when the key is missing, or another one; and since when its
  -- owners know, after a second check a day later.
  checked_at timestamptz,
  missing_since timestamptz,
  failing_since timestamptz,
  primary key (team_id, id),
  unique (team_id, name),
  check ((status = 'verified') = (verified_at is not null)),
  check (num_nulls(next_dkim_selector, next_dkim_public_key, next_dkim_private_key) in (0, 3)),
  check (failing_since is null or missing_since is not null)
);
create index domains_to_recheck on domains (checked_at nulls first) where status = 'verified';

-- The audit trail: what people and operators changed. It outlives what it tells of, so it refers to nothing; an
-- operator's acts belong to no team.
create table audit_entries (
  id uuid primary key,
  team_id uuid,
  -- The person's address, `cli`, the prefix of a client's credential, or `recipient`: who left topics by a link.
  actor text not null,
  -- What was done, such as `key.create`, and to what.
  action text not null,
  subject text not null,
  detail text not null,
  created_at timestamptz not null
);
create index audit_entries_team on audit_entries (team_id, id);
create index audit_entries_actor on audit_entries (lower(actor), id);
create index audit_entries_action on audit_entries (action, id);
create index audit_entries_kind on audit_entries (split_part(action, '.', 1), id);
-- What was done with one broadcast: its entries have its id as their detail.
create index audit_entries_broadcast on audit_entries (team_id, detail, id)
  where split_part(action, '.', 1) = 'broadcast';

-- Each team's last refused API calls, for the developer who integrates: our words, never the call's contents.
create table refused_calls (
  team_id uuid not null references teams (id) on delete cascade,
  id uuid not null,
  method text not null,
  -- The route's pattern, without the ids and addresses of the call.
  route text not null,
  code text not null,
  message text not null,
  -- The first characters of the key; null for a session token.
  key_prefix text,
  -- The call's X-Request-Id.
  http_request_id text not null,
  created_at timestamptz not null,
  primary key (team_id, id)
);
