-- Teams whose messages get their jobs back: workers delete the jobs of a suspended team. A pass goes through the team's
-- waiting messages of a queue by id. There are two of them, as a worker that read the team as suspended may delete a job
-- shortly after the team was resumed.
create table resumed_teams (
  team_id uuid not null references teams (id) on delete cascade,
  queue text not null,
  -- When the pass starts.
  from_at timestamptz not null,
  -- The message at which the pass has arrived.
  after uuid not null default '00000000-0000-0000-0000-000000000000',
  primary key (team_id, queue, from_at)
);
