-- outside a transaction: the people behind a figure of a broadcast are listed without reading all of its emails.
drop index concurrently if exists emails_broadcast_people;
create index concurrently emails_broadcast_people on emails (team_id, broadcast_id, status, contact_id)
  where broadcast_id is not null;
