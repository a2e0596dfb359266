-- What reports say besides: replies of programs, unsubscribes at the provider, opens and clicks of machines, and reports
-- that could not be read. The list of kinds gets longer, so that every row that is there fits it. A later list has to
-- keep these kinds.
alter table email_events drop constraint email_events_kind_check;
alter table email_events add constraint email_events_kind_check check (kind in (
  'sent', 'delivered', 'opened', 'clicked', 'bounced', 'complained', 'deferred', 'held', 'unknown', 'delayed',
  'suppressed', 'auto_reply', 'unsubscribed', 'machine_opened', 'machine_clicked', 'unreadable',
  -- The last four: the email and the one that was sent again from it belong together.
  'requeued', 'gave_up', 'resent', 'copied', 'resent_from', 'copied_from')) not valid;
