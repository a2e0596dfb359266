-- Long work as one mechanism: what it is, how far it has come, who began it. It is done in slices, each a transaction
-- that moves the cursor, so that a process that dies loses nothing and repeats nothing.
create table works (
  id uuid primary key,
  -- Null: an operator's work, which belongs to no team.
  team_id uuid references teams (id) on delete cascade,
  kind text not null,
  -- What it was asked for; null once it is over, since it may name a person.
  given json,
  -- Where the next slice goes on; null before the first one and after the last.
  cursor json,
  done integer not null default 0,
  -- Null while nobody knows.
  total integer,
  result json not null default '{}',
  -- Why it ended before its end.
  fault text,
  begun_by text not null,
  begun_at timestamptz not null,
  moved_at timestamptz not null,
  finished_at timestamptz
);
create index works_of_team on works (team_id, id);
-- For the sweep: few at any time.
create index works_unfinished on works (moved_at) where finished_at is null;
