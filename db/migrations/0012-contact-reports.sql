-- What reports mean for contacts is derived from the events themselves, so that it cannot depend on their order.
-- An event that counts for or against a run of soft bounces names its contact; a contact made again later has
-- another id, and so no history.
alter table email_events add column contact_id uuid, add column effect text check (effect in ('soft', 'delivered'));
create index email_events_contact on email_events (team_id, contact_id, effect, occurred_at)
  where contact_id is not null;

-- In place of a running counter, which would depend on the order of arrival: what the status goes back to when a
-- delivery between turns up late. Set exactly while soft bounces are all that a contact is suppressed for.
alter table contacts
  drop column soft_bounces,
  add column status_before text check (status_before in ('subscribed', 'unsubscribed'));
