-- The fleet: each process's sign of life, and the figures that all of them count together.
-- Belongs to the operator, so no team_id here (design §6).
create table processes (
  id uuid primary key,
  kind text not null check (kind in ('web', 'worker')),
  host text not null,
  pid integer not null,
  -- What a worker works on, and the sender that each of these queues delivers through.
  queues text[] not null,
  senders jsonb not null,
  -- Jobs it has completed per second of late: {"deliver-email": …, …}.
  completed jsonb not null,
  -- How it fares just now: {"event_loop_lag_seconds": …, …}.
  gauges jsonb not null,
  started_at timestamptz not null,
  seen_at timestamptz not null
);

-- Counters and histograms: a row for each set of labels, added to every few seconds by each process.
create table counters (
  figure text not null,
  -- As Prometheus writes them: channel="email".
  labels text not null,
  -- One value for a counter; for a histogram its buckets, each with those below it, then count and sum.
  values double precision[] not null,
  primary key (figure, labels)
) with (fillfactor = 50);
