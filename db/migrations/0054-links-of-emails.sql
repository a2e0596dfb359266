-- Tells in the timelines of an email and of the one that was sent again from it that they belong together.
alter table email_events drop constraint email_events_kind_check, add constraint email_events_kind_check check (kind in (
  'sent', 'delivered', 'opened', 'clicked', 'bounced', 'complained', 'deferred', 'held', 'unknown', 'delayed',
  'requeued', 'gave_up', 'resent', 'copied', 'resent_from', 'copied_from'));
