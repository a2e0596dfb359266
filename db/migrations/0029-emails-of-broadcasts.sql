-- outside a transaction: a contact gets at most one email of a broadcast, and its unfinished ones are found at once.
drop index concurrently if exists emails_broadcast_contact;
create unique index concurrently emails_broadcast_contact on emails (team_id, broadcast_id, contact_id)
  where broadcast_id is not null;
drop index concurrently if exists emails_broadcast_unfinished;
create index concurrently emails_broadcast_unfinished on emails (team_id, broadcast_id)
  where unfinished and broadcast_id is not null;
