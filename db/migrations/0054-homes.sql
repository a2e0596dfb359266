-- Tells a copy of this database (restored, cloned, moved by a dump) from its failover: a copy sends nothing by itself.

-- Since when is known of all that a person or the service has stopped; why, of what the service has.
alter table paused_queues add column paused_by text, add column reason text;

-- The database that what is stored here is sent from, and how that was settled: a first process has begun to work on
-- it, processes lived through a failover, or a copy was recognised. No row until the first process has begun.
create table database_home (
  one boolean primary key default true check (one),
  -- Another one with each settlement.
  id uuid not null,
  place text not null,
  timeline text not null,
  how text not null check (how in ('begun', 'continued', 'restored')),
  settled_at timestamptz not null
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

-- Each broadcast kept the database that it was started on: one home for all takes its place.
alter table broadcasts drop column database;
drop function database_identity();
