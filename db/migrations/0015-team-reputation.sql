-- What a team's email does to its reputation, and the pause of its broadcasts and batch items.

-- Since when they are paused; null: they are not. Versions before this one don't know it, and go on.
alter table teams add column bulk_paused_at timestamptz;
-- {reason, sent, count, limit}: what it was paused for last.
alter table teams add column bulk_pause json;
-- When bulk email was resumed last: what was sent before that no longer counts.
alter table teams add column reputation_from timestamptz;
-- When the owners were warned last.
alter table teams add column reputation_warned_at timestamptz;

-- Whether an email came as an item of a batch. Older emails, and those of older versions, count as single.
alter table accepted_emails add column batch boolean not null default false;

-- Whether a hard bounce of it was counted.
alter table email_states add column hard_bounced boolean not null default false;

-- The stats of 'sending': emails by the time at which they were sent, as 'sent', 'hard_bounced', 'complained' and
-- 'suppressed'. An hour in which bulk email was resumed has two rows: the second begins with the resume.
alter table daily_figures drop constraint daily_figures_channel_check;
alter table daily_figures add constraint daily_figures_channel_check
  check (channel in ('email', 'whatsapp', 'sending'));
alter table hourly_figures drop constraint hourly_figures_channel_check;
alter table hourly_figures add constraint hourly_figures_channel_check
  check (channel in ('email', 'whatsapp', 'sending'));
create index hourly_figures_sending on hourly_figures (hour) where channel = 'sending';
create index daily_figures_sending on daily_figures (day) where channel = 'sending';

-- Time in which bulk email is paused doesn't count towards an item's time for attempts.
create function note_bulk_pause() returns trigger language plpgsql as $$
begin
  perform record_pause('bulk:' || new.id, case when new.bulk_paused_at is not null then timestamptz 'infinity' end);
  return null;
end $$;
create trigger note_bulk_pause after update of bulk_paused_at on teams for each row
  when (old.bulk_paused_at is distinct from new.bulk_paused_at) execute function note_bulk_pause();
