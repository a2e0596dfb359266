-- Suppressed addresses, by team. A suppression belongs to the address, whether or not it is a contact.

create table suppressed_addresses (
  team_id uuid not null references teams (id) on delete cascade,
  -- The local part in lower case with the ASCII domain, as the identity of a contact.
  identity text not null,
  -- What the pages of a list go by.
  id uuid not null default gen_random_uuid(),
  -- The address as it was first given.
  email text not null,
  -- Why it is suppressed. Null: that has ended.
  cause text check (cause in ('bounce', 'soft_bounces', 'complaint', 'manual')),
  since timestamptz,
  -- The email and the stored report that it comes from; null if it was added manually.
  email_id uuid,
  report_id uuid,
  -- The server's response, or the reason of who added it.
  response text not null default '',
  -- The first hard bounce. A complaint becomes the cause, and the bounce still stops transactional email.
  bounced_at timestamptz,
  bounce_response text,
  -- When it was last lifted: soft bounces before that don't count.
  lifted_at timestamptz,
  primary key (team_id, identity),
  unique (team_id, id),
  check ((cause is null) = (since is null)),
  check (cause is distinct from 'bounce' or bounced_at is not null)
);
create index suppressed_addresses_newest on suppressed_addresses (team_id, since desc, identity desc)
  where cause is not null;
create index suppressed_addresses_soft on suppressed_addresses (team_id, identity) where cause = 'soft_bounces';

-- Which suppressions stop transactional email. Teams that exist now keep sending; new ones start with 'bounces'.
alter table teams add column suppress_transactional text not null default 'nothing'
  check (suppress_transactional in ('bounces', 'bounces_and_complaints', 'nothing'));
alter table teams alter column suppress_transactional set default 'bounces';

-- What the table above knows of a contact's suppression. Version 0.1.0 doesn't write it: where it differs, a job copies.
alter table contacts add column suppression_copied text;

-- What suppressed an address whose person was erased; null in rows of version 0.1.0.
alter table erased_contacts add column cause text
  check (cause in ('bounce', 'soft_bounces', 'complaint', 'manual'));

-- 'applied': bounced, because no recipient was left that isn't suppressed. 'ignored': requeued with --force, so that
-- the relay is asked whatever the table says.
alter table email_states add column suppression text check (suppression in ('applied', 'ignored'));

create or replace view emails as
select e.team_id, e.id, s.id as state_id, e.domain_id, e.template_id, e.template_version_id, e.variables, e.from_address,
  e.to_emails, e.subject, e.html, s.size_kb, e.tags, s.status, e.idempotency_key, e.created_at, s.requeued_at,
  s.provider_message_id, e.broadcast_id, e.contact_id, e.body_text, e.headers, e.reply_to, e.http_request_id,
  s.pending_recipients, s.unfinished, s.tries_from, e.attachments, e.internal, e.first_cc, e.first_bcc,
  s.scheduled_at, s.expires_at, s.due_at, s.expired_at, s.suppression
from email_states s join accepted_emails e on e.team_id = s.team_id and e.id = s.id;

-- The list of kinds gets longer, so that every row that is there fits it.
alter table email_events drop constraint email_events_kind_check;
alter table email_events add constraint email_events_kind_check check (kind in (
  'sent', 'delivered', 'opened', 'clicked', 'bounced', 'complained', 'deferred', 'held', 'unknown', 'delayed',
  'suppressed',
  -- The last four: the email and the one that was sent again from it belong together.
  'requeued', 'gave_up', 'resent', 'copied', 'resent_from', 'copied_from')) not valid;

-- An email that was only suppressed is no bounce in stats: it counts as 'suppressed'.
create or replace function count_emails() returns trigger language plpgsql as $$
begin
  if tg_op = 'UPDATE' then
    insert into figure_deltas (team_id, channel, hour, broadcast_id, status, count)
    select team_id, 'email', date_trunc('hour', created_at, 'UTC'), broadcast_id, status, sum(n) from (
      select team_id, created_at, broadcast_id,
        case suppression when 'applied' then 'suppressed' else status end as status, 1 as n
      from became where not internal
      union all
      select team_id, created_at, broadcast_id,
        case suppression when 'applied' then 'suppressed' else status end, -1
      from was where not internal) delta
    group by team_id, 3, broadcast_id, status having sum(n) <> 0;
  else
    insert into figure_deltas (team_id, channel, hour, broadcast_id, status, count)
    select team_id, 'email', date_trunc('hour', created_at, 'UTC'), broadcast_id,
      case suppression when 'applied' then 'suppressed' else status end as counted,
      case tg_op when 'INSERT' then count(*) else -count(*) end
    from changed where not internal
    group by team_id, 3, broadcast_id, counted;
  end if;
  return null;
end $$;

-- Fills the table from the suppressions of contacts, in the background (suppression.judge). The id ascends with time,
-- as all ids do.
insert into background_jobs (id, kind, given, begun_by, begun_at, progressed_at)
select (lpad(to_hex((extract(epoch from now()) * 1000)::bigint), 12, '0') || '7' ||
    substr(replace(gen_random_uuid()::text, '-', ''), 14, 3) || '8' ||
    substr(replace(gen_random_uuid()::text, '-', ''), 18))::uuid,
  'suppression.judge', '{}', 'migration', now(), now() - interval '1 day'
where exists (select from contacts where status <> 'subscribed' and suppression is not null);
