-- Webhooks: a team's own servers that are told what happened, what they are told, and each try to tell them.
create table webhook_endpoints (
  team_id uuid not null references teams (id) on delete cascade,
  id uuid not null,
  url text not null,
  name text not null,
  -- Of which types it is told; '*' is all.
  types text[] not null,
  -- Only about emails of this domain; null: about everything.
  domain_id uuid,
  state text not null check (state in ('enabled', 'disabled')),
  -- Why it is disabled; null while it is enabled.
  state_reason text,
  -- What it is signed with, sealed; while it is replaced, also by the one before.
  secret bytea not null,
  previous_secret bytea,
  previous_until timestamptz,
  created_at timestamptz not null,
  last_success_at timestamptz,
  -- Since when nothing but failures came back; null after a success.
  failing_since timestamptz,
  primary key (team_id, id)
);

-- One row for each thing that happened and each endpoint that is told of it. The body is made once: each try sends the
-- same bytes.
create table webhook_messages (
  team_id uuid not null,
  id uuid not null,
  endpoint_id uuid not null,
  -- The same for each endpoint that is told.
  event_id uuid not null,
  type text not null,
  -- The email, the WhatsApp message or the contact that it is about; null for a test.
  subject_id uuid,
  body text not null,
  status text not null check (status in ('queued', 'delivered', 'failed')),
  created_at timestamptz not null,
  requeued_at timestamptz,
  tries_from timestamptz,
  unfinished boolean not null generated always as (status = 'queued') stored,
  primary key (team_id, id)
) with (fillfactor = 85);
create index webhook_messages_endpoint on webhook_messages (team_id, endpoint_id, id);
create index webhook_messages_subject on webhook_messages (team_id, subject_id);
-- What the sweep looks through, and what an endpoint's backlog is: few rows at most times.
create index webhook_messages_unfinished on webhook_messages (team_id, endpoint_id, created_at) where unfinished;

-- What became of a message beside its tries: it was requeued, or given up.
create table webhook_events (
  team_id uuid not null,
  message_id uuid not null,
  event_key bytea not null check (length(event_key) = 16),
  kind text not null check (kind in ('requeued', 'gave_up')),
  occurred_at timestamptz not null,
  detail text not null,
  -- Of no meaning here; every timeline of whole messages has it.
  code text,
  primary key (team_id, message_id, event_key)
);

-- Each request to an endpoint.
create table webhook_attempts (
  team_id uuid not null,
  endpoint_id uuid not null,
  id uuid not null,
  message_id uuid not null,
  at timestamptz not null,
  -- The status of the answer; null when none came.
  status integer,
  ms integer not null,
  -- The beginning of the answer, or why there was none.
  response text not null,
  -- Whether it counts towards giving the message up: not while the endpoint asks to wait.
  counts boolean not null,
  primary key (team_id, endpoint_id, id)
);
create index webhook_attempts_message on webhook_attempts (team_id, message_id, at);

create sequence "deliver-webhook-places" minvalue 0 start 0;
