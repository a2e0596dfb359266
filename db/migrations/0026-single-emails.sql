-- outside a transaction: finds a team's newest single emails without reading those of its broadcasts
drop index concurrently if exists accepted_emails_single;

create index concurrently accepted_emails_single on accepted_emails (team_id, id)
  where broadcast_id is null and not internal;
