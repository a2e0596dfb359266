-- Who did what, when: what people and operators changed. Kept apart from what it tells of, so that it outlives it.
-- A directory: an operator's deeds belong to no team.
create table audit_entries (
  id uuid primary key,
  team_id uuid,
  -- The person's address, or `cli`.
  actor text not null,
  -- What was done, as `key.create`, and to what.
  action text not null,
  subject text not null,
  detail text not null,
  created_at timestamptz not null
);
create index audit_entries_team on audit_entries (team_id, id);
