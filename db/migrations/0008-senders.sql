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
