-- outside a transaction: finds contacts whose suppression isn't in suppressed_addresses, or ended; few at any time
drop index concurrently if exists contacts_to_copy;

create index concurrently contacts_to_copy on contacts (team_id, id)
  where (case when suppressed_softly then 'softly' else suppression end) is distinct from suppression_copied;
