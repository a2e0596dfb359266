-- Tries and hours of a message count from its acceptance or from the last requeue by a person. The sweep requeues, too,
-- what has lost its job: that must not grant more tries.
alter table emails add column tries_from timestamptz;
alter table whatsapp_messages add column tries_from timestamptz;
-- Until now each requeue counted.
update emails set tries_from = requeued_at where unfinished and requeued_at is not null;
update whatsapp_messages set tries_from = requeued_at where unfinished and requeued_at is not null;
