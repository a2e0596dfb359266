-- outside a transaction: finds a team's failed emails without reading those that wait
drop index concurrently if exists email_events_failed;

create index concurrently email_events_failed on email_events (team_id, email_id) where kind = 'gave_up';
