-- Broadcasts: one template to all contacts of some topics, who of them got none and why, and what came of it in figures.
create table broadcasts (
  team_id uuid not null references teams (id) on delete cascade,
  id uuid not null,
  name text not null,
  state text not null check (state in ('draft', 'scheduled', 'sending', 'paused', 'sent', 'cancelled')),
  -- Why it is paused when no person did it: overdue, quota_exceeded, bounces, complaints, restored, …
  state_reason text check (state_reason is null or state = 'paused'),
  from_address text not null,
  reply_to text not null,
  subject text not null,
  template_id uuid not null,
  topic_ids uuid[] not null check (topic_ids <> '{}'),
  exclude_topic_ids uuid[] not null,
  -- What properties must be, as [{property, op, value}]; all of it.
  conditions json not null,
  -- Defaults for slots that a contact's properties do not fill.
  variables json not null,
  -- json keeps the order and spelling of the names exactly as accepted.
  headers json,
  tags json not null,
  rate_per_minute integer check (rate_per_minute > 0),
  send_at timestamptz,
  idempotency_key text,
  -- Fixed when it is started or scheduled: what was checked is what is sent.
  template_version_id uuid,
  link_base text,
  -- The database it was started on: on a restored copy it must not go on by itself.
  database text,
  -- Fixed when it begins: contacts made from then on are none of its audience, which had this many.
  audience_until timestamptz,
  audience integer,
  -- The last contact that the walk has passed, and when it had passed them all.
  cursor uuid,
  walked_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  started_at timestamptz,
  ended_at timestamptz,
  primary key (team_id, id),
  check (state in ('draft', 'cancelled') or template_version_id is not null and link_base is not null)
);
create unique index broadcasts_idempotency_key on broadcasts (team_id, idempotency_key)
  where idempotency_key is not null;
-- What the sweep looks through.
create index broadcasts_under_way on broadcasts (team_id, id) where state in ('scheduled', 'sending');

-- Contacts that a broadcast picked and that get nothing from it, or whose email was withdrawn.
create table broadcast_skips (
  team_id uuid not null,
  broadcast_id uuid not null,
  -- The contact may be gone: its address stays for the list, until the person is erased.
  contact_id uuid not null,
  email text not null,
  reason text not null check (
    reason in ('variables', 'unsubscribed', 'suppressed', 'left_topic', 'deleted', 'cancelled')),
  detail text not null,
  at timestamptz not null,
  primary key (team_id, broadcast_id, contact_id),
  foreign key (team_id, broadcast_id) references broadcasts (team_id, id) on delete cascade
);

-- What moved of a broadcast's figures: whoever moves rows appends it in the same transaction, so that nobody waits for
-- a counter. A figure is the sum of its moves; a scheduled job folds many into one.
create table broadcast_moves (
  team_id uuid not null,
  broadcast_id uuid not null,
  id bigint generated always as identity,
  figure text not null check (figure in (
    'made', 'skipped', 'queued', 'sent', 'delivered', 'opened', 'clicked', 'bounced', 'complained')),
  count integer not null,
  primary key (team_id, broadcast_id, id),
  foreign key (team_id, broadcast_id) references broadcasts (team_id, id) on delete cascade
);

-- A report, a try and a requeue all move an email to another status: the trigger forgets none of them.
create function note_broadcast_move() returns trigger language plpgsql as $$
begin
  insert into broadcast_moves (team_id, broadcast_id, figure, count)
  values (new.team_id, new.broadcast_id, old.status, -1), (new.team_id, new.broadcast_id, new.status, 1);
  return null;
end $$;
create trigger note_broadcast_move after update of status on emails for each row
  when (new.broadcast_id is not null and old.status <> new.status) execute function note_broadcast_move();

-- Which database this is: another one for each restored copy, and after a point in time was restored.
create function database_identity() returns text language sql stable as $$
  select s.system_identifier || '/' || c.timeline_id || '/' || d.oid
  from pg_control_system() s, pg_control_checkpoint() c, pg_database d where d.datname = current_database()
$$;

-- The place of the team's last job in the line before the queue of broadcasts.
alter table allowances add column broadcast_place bigint not null default 0;
create sequence "deliver-broadcast-places" minvalue 0 start 0;
