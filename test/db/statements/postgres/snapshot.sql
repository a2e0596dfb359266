-- seenNow
select pg_current_snapshot()::text as seen
