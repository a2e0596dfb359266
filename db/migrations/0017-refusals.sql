-- The last API calls of each team that were refused, for whoever integrates: what was said, never what was sent.
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
  request_id text not null,
  created_at timestamptz not null,
  primary key (team_id, id)
);
