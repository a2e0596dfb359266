-- Accepted emails and their timeline. The row is the truth; the queue's job only names it.
-- No foreign keys on this hot path: accepting locks the team's allowance row, which proves the team, and
-- domains, templates and contacts may be removed while their emails stay.
create table emails (
  team_id uuid not null,
  id uuid not null,
  domain_id uuid not null,
  template_id uuid,
  template_version_id uuid,
  -- Only what the template's slots take; html is rendered from version and variables (decisions: html).
  variables json,
  from_address text not null,
  to_emails text[] not null,
  subject text not null,
  html text,
  size_kb double precision,
  tags json not null,
  status text not null check (status in ('queued', 'sent', 'delivered', 'opened', 'clicked', 'bounced', 'complained')),
  idempotency_key text,
  created_at timestamptz not null,
  requeued_at timestamptz,
  provider_message_id text,
  broadcast_id uuid,
  contact_id uuid,
  -- The request's text; null when it gave none (then the template's text counts).
  body_text text,
  -- json keeps the order and spelling of the names exactly as accepted.
  headers json,
  reply_to text not null,
  -- The X-Request-Id of the call that sent it; null for what we send ourselves.
  http_request_id text,
  -- Recipients that the provider put off while it took others; null when the whole email stands or falls.
  pending_recipients text[],
  -- Whether an email still has something to deliver. The sweep's index is over this and not over the status, which
  -- every report changes: those updates stay HOT.
  unfinished boolean not null generated always as (
    (status = 'queued' and provider_message_id is null) or pending_recipients is not null) stored,
  primary key (team_id, id),
  check ((html is null) = (template_version_id is not null))
) with (fillfactor = 90);

create unique index emails_idempotency_key on emails (team_id, idempotency_key) where idempotency_key is not null;
-- What the sweep looks through, few rows at any time: a half-sent email is unfinished too.
create index emails_unfinished on emails (created_at) where unfinished;
-- For reports that carry nothing but the provider's id.
create index emails_provider_message_id on emails (provider_message_id) where provider_message_id is not null;

-- Everything that happened to an email, by recipient. event_key, a digest of what names the event, makes a repeated
-- report fall away.
create table email_events (
  team_id uuid not null,
  email_id uuid not null,
  event_key bytea not null check (length(event_key) = 16),
  kind text not null check (kind in (
    'sent', 'delivered', 'opened', 'clicked', 'bounced', 'complained', 'deferred', 'held', 'unknown', 'delayed',
    'requeued', 'gave_up')),
  recipient text,
  occurred_at timestamptz not null,
  detail text not null,
  -- An event that counts for or against a run of soft bounces names its contact, so that what reports mean for a
  -- contact cannot depend on their order. A contact made again later has another id, and so no history.
  contact_id uuid,
  effect text check (effect in ('soft', 'delivered')),
  primary key (team_id, email_id, event_key)
);
create index email_events_contact on email_events (team_id, contact_id, effect, occurred_at)
  where contact_id is not null;

-- What makes two spellings of a recipient one: the bare address in lower case; its domain stays as it was given.
create function recipient_identities(addresses text[]) returns text[]
  language plpgsql immutable strict parallel safe as $$
declare
  lines text := lower(array_to_string(addresses, E'\n'));
begin
  if position('<' in lines) > 0 then
    lines := regexp_replace(lines, '^.*<([^<>]*)>$', '\1', 'gn');
  end if;
  return string_to_array(lines, E'\n');
end $$;
-- For `email find`. Its list of pending entries is short, so that no accept waits long for its merging.
create index emails_recipients on emails using gin (recipient_identities(to_emails))
  with (gin_pending_list_limit = 512);
