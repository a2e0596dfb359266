-- What becomes of an email stands beside what was accepted: each report and each try would copy all of the email
-- otherwise, and enter the copy in every index. From here on a trigger keeps these rows as the old columns are.
create table email_states (
  team_id uuid not null,
  id uuid not null,
  -- As the email's own: what looks for emails by what became of them reads this table alone.
  created_at timestamptz not null,
  broadcast_id uuid,
  -- Of an email of a broadcast: its contact.
  reached_id uuid,
  -- Whether it counts in the team's figures, as all does but sign-in mail of ours.
  in_figures boolean not null,
  status text not null check (status in ('queued', 'sent', 'delivered', 'opened', 'clicked', 'bounced', 'complained')),
  -- null until html is rendered.
  size_kb double precision,
  requeued_at timestamptz,
  -- Tries and hours count from here: the acceptance, or the last requeue by a person.
  tries_from timestamptz,
  provider_message_id text,
  -- How often its recipients were rewritten, as the email's own: who waited for this row's lock sees a newer number here
  -- than there, and so that it has read the email too early.
  rewrites smallint not null default 0,
  -- Recipients that the provider put off while it took others; null when the whole email stands or falls.
  pending_recipients text[],
  -- Whether an email still has something to deliver. Indexes are over this and not over the status, which every report
  -- changes: an update that changes no indexed column stays within its page (HOT).
  unfinished boolean not null generated always as (
    (status = 'queued' and provider_message_id is null) or pending_recipients is not null) stored,
  -- Of an email of a broadcast: its status. Others' does not change with their status, so their updates stay HOT.
  broadcast_status text generated always as (case when broadcast_id is not null then status end) stored,
  primary key (team_id, id)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05,
  autovacuum_analyze_scale_factor = 0.02);

-- What the sweep looks through, few rows at any time: a half-sent email is unfinished too.
create index email_states_unfinished on email_states (created_at) where unfinished;
-- A list of what is queued, and the count of what waits for long, read these alone, however much other teams wait.
create index email_states_team_unfinished on email_states (team_id, id) where unfinished;
-- For reports that carry nothing but the provider's id.
create index email_states_provider_message_id on email_states (provider_message_id)
  where provider_message_id is not null;
create index email_states_broadcast_unfinished on email_states (team_id, broadcast_id)
  where unfinished and broadcast_id is not null;
-- The people behind a figure of a broadcast are listed without reading all of its emails.
create index email_states_broadcast_people on email_states (team_id, broadcast_id, broadcast_status, reached_id)
  where broadcast_id is not null;

-- While rows are copied, what is written goes to both. A deletion and a lot of copies wait for each other: else a copy
-- of what is just being deleted would stay.
create function copy_email_state() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    perform pg_advisory_xact_lock_shared(7041988, 38);
    delete from email_states where team_id = old.team_id and id = old.id;
    return null;
  end if;
  insert into email_states as s (
    team_id, id, created_at, broadcast_id, reached_id, in_figures, status, size_kb, requeued_at, tries_from,
    provider_message_id, pending_recipients)
  values (
    new.team_id, new.id, new.created_at, new.broadcast_id,
    case when new.broadcast_id is not null then new.contact_id end,
    new.http_request_id is not null or new.broadcast_id is not null
      or strpos(new.tags::text, '"heliograph:sign-in-link"') = 0,
    new.status, new.size_kb, new.requeued_at, new.tries_from, new.provider_message_id, new.pending_recipients)
  on conflict (team_id, id) do update set
    created_at = excluded.created_at, reached_id = excluded.reached_id, status = excluded.status,
    size_kb = excluded.size_kb, requeued_at = excluded.requeued_at, tries_from = excluded.tries_from,
    provider_message_id = excluded.provider_message_id, pending_recipients = excluded.pending_recipients;
  return null;
end $$;
create trigger copy_state after insert or update or delete on emails
  for each row execute function copy_email_state();

-- Copies what was there before the trigger, in lots that nobody waits for for long; begun again, it goes through all.
create procedure copy_email_states() language plpgsql as $$
declare
  last_team uuid := '00000000-0000-0000-0000-000000000000';
  last_id uuid := '00000000-0000-0000-0000-000000000000';
  found_team uuid;
  found_id uuid;
begin
  loop
    perform pg_advisory_xact_lock(7041988, 38);
    select team_id, id into found_team, found_id from (
      select team_id, id from emails where (team_id, id) > (last_team, last_id)
      order by team_id, id limit 2000) lot
    order by team_id desc, id desc limit 1;
    exit when not found;
    insert into email_states (
      team_id, id, created_at, broadcast_id, reached_id, in_figures, status, size_kb, requeued_at, tries_from,
      provider_message_id, pending_recipients)
    select team_id, id, created_at, broadcast_id, case when broadcast_id is not null then contact_id end,
      http_request_id is not null or broadcast_id is not null
        or strpos(tags::text, '"heliograph:sign-in-link"') = 0,
      status, size_kb, requeued_at, tries_from, provider_message_id, pending_recipients
    from emails where (team_id, id) > (last_team, last_id) and (team_id, id) <= (found_team, found_id)
    order by team_id, id
    on conflict (team_id, id) do nothing;
    commit;
    last_team := found_team;
    last_id := found_id;
  end loop;
  commit;
end $$;
