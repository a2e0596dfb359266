-- Sending domains that start slowly with broadcasts, by their name over all live teams.
create table domain_ramps (
  name text primary key,
  -- 'off': by hand, or since the domain had a history when its first broadcast started; 'ended': it reached its top.
  state text not null check (state in ('on', 'off', 'ended')),
  -- How many emails of broadcasts may be sent on `day` (UTC), how many were, and what the limit grows by.
  day_limit integer not null check (day_limit > 0),
  factor double precision not null check (factor >= 1),
  day date not null,
  used integer not null default 0
);

-- What came back of a ramped day's emails. Append only, so that no sender waits for a counter.
create table domain_ramp_reports (
  name text not null references domain_ramps (name) on delete cascade,
  day date not null,
  kind text not null check (kind in ('bounced', 'complained'))
);
create index domain_ramp_reports_day on domain_ramp_reports (name, day);
