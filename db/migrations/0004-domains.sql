-- Sending domains of a team, each with its DKIM key pair; the private half is encrypted with SECRET_KEY.
create table domains (
  team_id uuid not null references teams (id) on delete cascade,
  id uuid not null,
  name text not null,
  status text not null check (status in ('pending', 'verified')),
  dkim_selector text not null,
  dkim_public_key text not null,
  dkim_private_key bytea not null,
  -- The key that will take its place once its record is found: all three, or none.
  next_dkim_selector text,
  next_dkim_public_key text,
  next_dkim_private_key bytea,
  created_at timestamptz not null,
  verified_at timestamptz,
  primary key (team_id, id),
  unique (team_id, name),
  check (num_nulls(next_dkim_selector, next_dkim_public_key, next_dkim_private_key) in (0, 3))
);
