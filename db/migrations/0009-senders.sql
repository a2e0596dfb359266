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
  pause_reason text
) with (fillfactor = 50);

-- Pauses of one recipient at one sender: the provider limits what a number sends to each. Gone when they are over.
create table recipient_pauses (
  sender text not null,
  recipient text not null,
  paused_until timestamptz not null,
  reason text not null,
  primary key (recipient, sender)
);
create index recipient_pauses_until on recipient_pauses (paused_until);
