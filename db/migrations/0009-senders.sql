-- Pacing of what we send through: a number, an account, a relay. Shared by all workers; belongs to no team.
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
  -- How often in a row it could not be sent through at all, and since when that is known. Above 0, one message at a time
  -- probes whether it is mended.
  troubles integer not null default 0,
  troubled_at timestamptz,
  -- When the provider took a message again after the last trouble.
  accepted_at timestamptz
) with (fillfactor = 50);

-- What happened to senders, for operators: what stopped them, and when they went on.
create table sender_events (
  sender text not null,
  id uuid not null,
  kind text not null check (kind in ('slowed', 'paused', 'recovered', 'resumed')),
  occurred_at timestamptz not null,
  detail text not null,
  primary key (sender, id)
);

-- Queues that an operator has stopped: what they hold waits.
create table paused_queues (
  queue text primary key,
  paused_at timestamptz not null
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
