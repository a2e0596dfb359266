-- outside a transaction: the sweep walks through what waits, from the oldest on.
drop index concurrently if exists webhook_messages_waiting;
create index concurrently webhook_messages_waiting on webhook_messages (created_at) where unfinished;
