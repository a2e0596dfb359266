-- Fleet: the processes and what they count, figures of days and broadcasts, background jobs with a cursor, and how far
-- the nightly upkeep has come.

-- Each process's sign of life.
create table processes (
  id uuid primary key,
  kind text not null check (kind in ('web', 'worker')),
  host text not null,
  pid integer not null,
  -- What a worker works on, and the sender that each of these queues delivers through.
  queues text[] not null,
  senders json not null,
  -- Jobs completed per second of late: {"deliver-email": …, …}.
  completed json not null,
  -- How it does just now: {"event_loop_lag_seconds": …, …}.
  gauges json not null,
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

-- Changes of the figures of days and broadcasts: triggers append one for whatever changes rows, as topic_counts, so that
-- nobody waits for a counter and nothing is counted again. A figure is the sum of its deltas; a scheduled job folds them.
create table figure_deltas (
  team_id uuid not null,
  id bigint generated always as identity,
  -- 'broadcast': it is of a broadcast alone, and of no day.
  channel text not null,
  -- The hour in which the messages were accepted.
  hour timestamptz not null,
  broadcast_id uuid,
  status text not null,
  count integer not null,
  primary key (team_id, id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
create index figure_deltas_of_broadcasts on figure_deltas (team_id, broadcast_id) where broadcast_id is not null;

-- Internal mail counts in no figures. A statement that changes no status appends nothing.
create function count_emails() returns trigger language plpgsql as $$
begin
  if tg_op = 'UPDATE' then
    insert into figure_deltas (team_id, channel, hour, broadcast_id, status, count)
    select team_id, 'email', date_trunc('hour', created_at, 'UTC'), broadcast_id, status, sum(n) from (
      select team_id, created_at, broadcast_id, status, 1 as n from became where not internal
      union all
      select team_id, created_at, broadcast_id, status, -1 from was where not internal) delta
    group by team_id, 3, broadcast_id, status having sum(n) <> 0;
  else
    insert into figure_deltas (team_id, channel, hour, broadcast_id, status, count)
    select team_id, 'email', date_trunc('hour', created_at, 'UTC'), broadcast_id, status,
      case tg_op when 'INSERT' then count(*) else -count(*) end
    from changed where not internal
    group by team_id, 3, broadcast_id, status;
  end if;
  return null;
end $$;

create trigger count_emails_stored after insert on email_states
  referencing new table as changed for each statement execute function count_emails();
create trigger count_emails_deleted after delete on email_states
  referencing old table as changed for each statement execute function count_emails();
create trigger count_emails_changed after update on email_states
  referencing old table as was new table as became for each statement execute function count_emails();

create function count_whatsapp_messages() returns trigger language plpgsql as $$
begin
  if tg_op = 'UPDATE' then
    insert into figure_deltas (team_id, channel, hour, status, count)
    select team_id, 'whatsapp', date_trunc('hour', created_at, 'UTC'), status, sum(n) from (
      select team_id, created_at, status, 1 as n from became
      union all
      select team_id, created_at, status, -1 from was) delta
    group by team_id, 3, status having sum(n) <> 0;
  else
    insert into figure_deltas (team_id, channel, hour, status, count)
    select team_id, 'whatsapp', date_trunc('hour', created_at, 'UTC'), status,
      case tg_op when 'INSERT' then count(*) else -count(*) end
    from changed group by team_id, 3, status;
  end if;
  return null;
end $$;

create trigger count_whatsapp_stored after insert on whatsapp_messages
  referencing new table as changed for each statement execute function count_whatsapp_messages();
create trigger count_whatsapp_deleted after delete on whatsapp_messages
  referencing old table as changed for each statement execute function count_whatsapp_messages();
create trigger count_whatsapp_changed after update on whatsapp_messages
  referencing old table as was new table as became for each statement execute function count_whatsapp_messages();

-- Skips are noted and forgotten; none passes from one broadcast to another.
create function count_skips() returns trigger language plpgsql as $$
begin
  insert into figure_deltas (team_id, channel, hour, broadcast_id, status, count)
  select team_id, 'broadcast', date_trunc('hour', now(), 'UTC'), broadcast_id, 'skipped',
    case tg_op when 'INSERT' then count(*) else -count(*) end
  from changed group by team_id, broadcast_id;
  return null;
end $$;

create trigger count_skips_noted after insert on broadcast_skips
  referencing new table as changed for each statement execute function count_skips();
create trigger count_skips_forgotten after delete on broadcast_skips
  referencing old table as changed for each statement execute function count_skips();

-- How many messages of a day stand at which status: what charts are drawn from.
create table daily_figures (
  team_id uuid not null references teams (id) on delete cascade,
  channel text not null check (channel in ('email', 'whatsapp')),
  day date not null,
  status text not null,
  count integer not null,
  primary key (team_id, channel, day, status)
);
-- For forgetting them.
create index daily_figures_day on daily_figures (day);

-- The same of the last two days by the hour.
create table hourly_figures (
  team_id uuid not null references teams (id) on delete cascade,
  channel text not null check (channel in ('email', 'whatsapp')),
  hour timestamptz not null,
  status text not null,
  count integer not null,
  primary key (team_id, channel, hour, status)
);
-- For forgetting them.
create index hourly_figures_hour on hourly_figures (hour);

create table broadcast_figures (
  team_id uuid not null,
  broadcast_id uuid not null,
  figure text not null,
  count integer not null,
  primary key (team_id, broadcast_id, figure),
  foreign key (team_id, broadcast_id) references broadcasts (team_id, id) on delete cascade
);

-- Background jobs as people see them: what it is, how far it has come, who began it. Done in slices, each a
-- transaction that moves the cursor, so that a process that dies loses nothing and repeats nothing.
create table background_jobs (
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
  progressed_at timestamptz not null,
  finished_at timestamptz,
  check (finished_at is null or given is null and cursor is null)
);
create index background_jobs_of_team on background_jobs (team_id, id);
-- For the sweep: few at any time.
create index background_jobs_unfinished on background_jobs (progressed_at) where finished_at is null;

-- How far the upkeep has come, so that it need not look through all rows again.
create table upkeep (
  -- `bodies`: those that were emptied; `sweep:<queue>`: the sweep's walk through what waits.
  kind text primary key,
  done_until timestamptz not null
);

-- Whether this is a copy of the database that mail was sent from (restored, cloned, moved by a dump) or its failover: a
-- copy sends nothing by itself. The database that what is stored here is sent from, and how that was decided: a first
-- process has begun to work on it, processes lived through a failover, or a copy was recognised. No row until the first
-- process has begun.
create table database_home (
  one boolean primary key default true check (one),
  -- Another one with each decision.
  id uuid not null,
  place text not null,
  timeline text not null,
  how text not null check (how in ('begun', 'continued', 'restored')),
  decided_at timestamptz not null
);

-- What each process has written last, and remembers: where it is missing, what was committed is missing.
create table process_marks (
  process uuid primary key,
  mark bigint not null,
  at timestamptz not null
) with (fillfactor = 50);

-- Where the data are: the same after a failover and after a point in time was restored, another one in each other copy.
-- A dump that is put back into its own database makes the table again.
create function database_place() returns text language sql stable as $$
  select s.system_identifier || '/' || d.oid || '/' || 'database_home'::regclass::oid
  from pg_control_system() s, pg_database d where d.datname = current_database()
$$;

-- Another one after a failover, and after a point in time was restored; null on a standby, which writes nothing. By the
-- log itself: pg_control_checkpoint() has the old one until a checkpoint is done.
create function database_timeline() returns text language sql stable as $$
  select case when not pg_is_in_recovery() then left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) end
$$;

create function is_at_home() returns boolean language sql stable as $$
  select coalesce((
    select place = database_place() and coalesce(timeline = database_timeline(), true) from database_home), true)
$$;

-- Tables that grow without end are vacuumed by a fiftieth of their rows: by default a fifth is dead first, two million
-- of ten.
do $$
declare
  growing text;
begin
  foreach growing in array array['accepted_emails', 'email_states', 'email_events', 'whatsapp_requests',
    'whatsapp_messages', 'whatsapp_events', 'webhook_messages', 'webhook_events', 'email_files', 'broadcast_skips',
    'contacts', 'reports', 'sender_events', 'audit_entries', 'daily_figures']
  loop
    execute format('alter table %I set (autovacuum_vacuum_scale_factor = 0.02,
      autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.02)', growing);
  end loop;
end $$;
