-- Raw reports from providers, as their hooks took them: read before any team is known, so no team_id here (design §6).
create table reports (
  id uuid primary key,
  provider text not null check (provider in ('smtp', 'ses', 'whatsapp')),
  -- The provider's own id of the report, or a hash of its bytes: what makes a repeat fall away.
  event_key text not null,
  body bytea not null,
  received_at timestamptz not null,
  -- Until then a report whose message is not found is tried again; afterwards it is parked.
  retry_until timestamptz not null,
  state text not null default 'pending' check (state in ('pending', 'done', 'parked')),
  -- Why it was parked, or what of it moved nothing.
  reason text,
  unique (provider, event_key)
);
-- For `report list --parked` and for the sweep: few rows at any time.
create index reports_unsettled on reports (state, received_at) where state <> 'done';
