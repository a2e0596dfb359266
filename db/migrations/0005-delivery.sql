-- Delivery: the senders that messages leave through, what stands still and since when, and the reports that come back.
-- It belongs to the operator: no team_id but where a report's teams are known.

-- The pace of each number, account, relay or webhook endpoint, shared by all workers.
create table senders (
  key text primary key,
  -- Sends per second now; lowered when the provider asks for it, raised again slowly up to the ceiling.
  rate double precision not null check (rate > 0),
  slowed_at timestamptz,
  tokens double precision not null,
  refilled_at timestamptz not null,
  paused_until timestamptz,
  -- The provider's words for the pause, for people.
  pause_reason text,
  -- How often in a row it could not be sent through at all, and since when that is known. Above 0, one message at a
  -- time probes whether it works again.
  troubles integer not null default 0,
  troubled_at timestamptz,
  -- When the provider took a message again after the last trouble.
  accepted_at timestamptz
) with (fillfactor = 50);
-- Looked up before each claim of webhooks: few of as many senders as there are endpoints.
create index senders_in_trouble on senders (key) where troubles > 0 or paused_until is not null;

-- What stopped senders and when they went on, for operators.
create table sender_events (
  sender text not null,
  id uuid not null,
  kind text not null check (kind in ('slowed', 'paused', 'recovered', 'resumed')),
  occurred_at timestamptz not null,
  detail text not null,
  primary key (sender, id)
);

-- Pauses of one recipient at one sender: the provider limits what a number sends to each. Gone when they are over.
create table recipient_pauses (
  sender text not null,
  recipient text not null,
  paused_until timestamptz not null,
  reason text not null,
  primary key (recipient, sender)
);
create index recipient_pauses_until on recipient_pauses (paused_until);

-- Queues that an operator has stopped: what they hold waits.
create table paused_queues (
  queue text primary key,
  paused_at timestamptz not null,
  -- The person or `cli`; null: the service itself, for this reason.
  paused_by text,
  reason text,
  check (num_nulls(paused_by, reason) = 1)
);

-- The highest place given so far in each fair queue (db/queue/fair-queue.ts).
create sequence deliver_email_places minvalue 0 start 0;
create sequence deliver_whatsapp_places minvalue 0 start 0;
create sequence deliver_broadcast_places minvalue 0 start 0;
create sequence deliver_webhook_places minvalue 0 start 0;
create sequence deliver_test_places minvalue 0 start 0;
create sequence deliver_test_whatsapp_places minvalue 0 start 0;

-- When a sender, a queue, a team or a broadcast was paused: a message is tried for 24 h, and time in which it could not
-- be tried does not count. Triggers keep it, so that no way of pausing is forgotten.
create table pause_history (
  -- `sender:<key>`, `queue:<name>`, `team:<id>` or `broadcast:<id>`.
  subject text not null,
  began_at timestamptz not null,
  -- In the future, or infinity, while it lasts.
  ended_at timestamptz not null,
  primary key (subject, began_at)
);

-- From now on a subject is paused until then; null: it is not.
create function record_pause(of_subject text, until timestamptz) returns void language plpgsql as $$
declare
  now timestamptz := service_time();
begin
  update pause_history set ended_at = greatest(coalesce(until, now), now)
  where subject = of_subject and ended_at > now;
  if not found and until > now then
    insert into pause_history (subject, began_at, ended_at) values (of_subject, now, until)
    on conflict (subject, began_at) do update set ended_at = excluded.ended_at;
  end if;
end $$;

create function note_team_pause() returns trigger language plpgsql as $$
begin
  perform record_pause('team:' || new.id, case when new.suspended_at is not null then timestamptz 'infinity' end);
  return null;
end $$;
create trigger note_pause after update of suspended_at on teams for each row
  when (old.suspended_at is distinct from new.suspended_at) execute function note_team_pause();

create function note_broadcast_pause() returns trigger language plpgsql as $$
begin
  perform record_pause('broadcast:' || new.id, case when new.state = 'paused' then timestamptz 'infinity' end);
  return null;
end $$;
create trigger note_pause after update of state on broadcasts for each row
  when ((old.state = 'paused') <> (new.state = 'paused')) execute function note_broadcast_pause();

create function note_queue_pause() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    perform record_pause('queue:' || old.queue, null);
  else
    perform record_pause('queue:' || new.queue, 'infinity');
  end if;
  return null;
end $$;
create trigger note_pause after insert or delete on paused_queues
  for each row execute function note_queue_pause();

create function note_sender_pause() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    perform record_pause('sender:' || old.key, null);
  else
    perform record_pause('sender:' || new.key, case when new.troubles > 0 then timestamptz 'infinity' else new.paused_until end);
  end if;
  return null;
end $$;
-- Each batch of sends writes a sender's row: only a pause or a trouble that begins, moves or ends is worth a look.
create trigger note_pause after update of paused_until, troubles on senders for each row
  when (old.paused_until is distinct from new.paused_until or (old.troubles > 0) <> (new.troubles > 0))
  execute function note_sender_pause();
-- A webhook's sender is deleted with its endpoint, and when that is enabled again or gets another URL.
create trigger note_end_of_pause after delete on senders for each row
  when (old.paused_until is not null or old.troubles > 0) execute function note_sender_pause();

-- Raw reports as the hooks took them, before anybody knows whose messages they are about.
create table reports (
  id uuid primary key,
  provider text not null check (provider in (
    'smtp', 'ses', 'mailgun', 'sendgrid', 'postmark', 'brevo', 'whatsapp', 'test')),
  -- The provider's own id of the report, or a hash of its bytes: a repeat falls away.
  event_key text not null,
  body bytea not null,
  received_at timestamptz not null,
  -- Until then a report whose message is not found is tried again; afterwards it is parked.
  retry_until timestamptz not null,
  state text not null default 'pending' check (state in ('pending', 'done', 'parked')),
  -- Why it was parked, or what of it moved nothing.
  reason text,
  -- Whose messages it is about, once that is known: erasing a person drops reports of the team alone.
  team_ids uuid[],
  unique (provider, event_key)
);
-- For `report list --parked` and for the sweep: few rows at any time.
create index reports_open on reports (state, received_at) where state <> 'done';
