-- Whose an email is: of a broadcast's the identity of its recipient, who gets one of it however often the contact is
-- made again; of a test of a broadcast that of the contact as whom it is shown. null of others, and of erased people.
alter table accepted_emails add column person text;
create unique index emails_person on accepted_emails (team_id, broadcast_id, person) where person is not null;
-- The same of those whose email of a broadcast was deleted: they have had it.
alter table broadcast_skips add column person text;
create index broadcast_skips_person on broadcast_skips (team_id, broadcast_id, person) where person is not null;

-- The topics that a contact, or somebody who was erased, has left by a link of an email or by the one-shot unsubscribe.
alter table contacts add column left_topic_ids uuid[] not null default '{}';
alter table erased_contacts add column left_topic_ids uuid[] not null default '{}';
alter table erased_contacts drop constraint erased_contacts_status_check,
  add constraint erased_contacts_status_check check (
    status in ('unsubscribed', 'bounced', 'complained') or status = 'subscribed' and left_topic_ids <> '{}');
