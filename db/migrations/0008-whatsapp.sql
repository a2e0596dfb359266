-- WhatsApp: templates as the provider keeps them, accepted requests, one message row per recipient, their timeline.
-- As with emails: no foreign keys on the accept path, the locked allowance row proves the team.
create table whatsapp_templates (
  team_id uuid not null references teams (id) on delete cascade,
  id uuid not null,
  name text not null,
  language text not null,
  category text,
  status text not null check (status in ('approved', 'pending', 'rejected', 'paused', 'disabled')),
  -- Since when, so that older news of it change nothing.
  status_at timestamptz not null,
  -- The provider's own object, as it was given: json keeps its order and spelling.
  definition json not null,
  -- Derived from the definition: the parameters it takes, and the true places of its dynamic URL buttons.
  slots text[] not null,
  url_buttons smallint[] not null,
  -- Why we cannot send it, in words; null when we can.
  unsupported text,
  -- The provider's last complaint about the template itself; null once it was read afresh.
  fault text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (team_id, id),
  unique (team_id, name, language)
);
-- For the provider's own news of a template, which knows no team.
create index whatsapp_templates_name on whatsapp_templates (name, language);

-- What was asked for, once for all its recipients; holds the idempotency key.
create table whatsapp_requests (
  team_id uuid not null,
  id uuid not null,
  template_id uuid not null,
  parameters json not null,
  idempotency_key text,
  -- The X-Request-Id of the call.
  http_request_id text,
  created_at timestamptz not null,
  primary key (team_id, id)
);
create unique index whatsapp_requests_idempotency_key on whatsapp_requests (team_id, idempotency_key)
  where idempotency_key is not null;

create table whatsapp_messages (
  team_id uuid not null,
  id uuid not null,
  request_id uuid not null,
  -- The place among the request's recipients, from 0.
  position smallint not null,
  recipient text not null,
  -- ISO 3166-1 alpha-2 of the number; null where it is not known.
  country text,
  status text not null check (status in ('queued', 'sent', 'failed', 'delivered', 'read')),
  created_at timestamptz not null,
  requeued_at timestamptz,
  -- When the provider took it: from then on it is not sent again. The status moves by reports (contract §3.3).
  accepted_at timestamptz,
  provider_message_id text,
  -- Whether it is still to be delivered. As with emails: the sweep's index must not hold the status.
  unfinished boolean not null generated always as (status = 'queued' and accepted_at is null) stored,
  primary key (team_id, id),
  unique (team_id, request_id, position)
) with (fillfactor = 90);
-- For the sweep: few rows at any time, those the provider has not taken yet.
create index whatsapp_messages_unfinished on whatsapp_messages (created_at) where unfinished;
-- For people who look for what was sent to a number.
create index whatsapp_messages_recipient on whatsapp_messages (team_id, recipient, id);
-- For reports that carry nothing but the provider's id.
create index whatsapp_messages_provider_message_id on whatsapp_messages (provider_message_id)
  where provider_message_id is not null;

-- Everything that happened to a message. event_key, a digest of what names the event, makes a repeated report fall away.
create table whatsapp_events (
  team_id uuid not null,
  message_id uuid not null,
  event_key bytea not null check (length(event_key) = 16),
  kind text not null check (kind in (
    'accepted', 'sent', 'delivered', 'read', 'failed', 'deferred', 'held', 'unknown', 'requeued', 'gave_up')),
  occurred_at timestamptz not null,
  detail text not null,
  primary key (team_id, message_id, event_key)
);
