-- How many messages of a day stand at which status: what charts are drawn from, kept up by a scheduled job.
create table daily_figures (
  team_id uuid not null references teams (id) on delete cascade,
  channel text not null check (channel in ('email', 'whatsapp')),
  -- The UTC day on which they were accepted.
  day date not null,
  status text not null,
  count integer not null,
  primary key (team_id, channel, day, status)
);
