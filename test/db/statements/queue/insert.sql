-- insertJobs
with stored as (
  insert into pgboss.job (id, name, data, priority, start_after, created_on, keep_until, expire_seconds,
    deletion_seconds, retry_limit, retry_delay, retry_backoff, retry_delay_max, policy, dead_letter,
    heartbeat_seconds, group_id)
  select f.id, f.name, f.data, f.priority, now(), now(), now() + q.retention_seconds * interval '1 second',
    q.expire_seconds, q.deletion_seconds, q.retry_limit, q.retry_delay, coalesce(q.retry_backoff, false),
    q.retry_delay_max, q.policy, q.dead_letter, q.heartbeat_seconds, f.group_id
  from unnest($1::text[], $2::uuid[], $3::jsonb[], $4::int4[], $5::text[]) as f (name, id, data, priority,
    group_id)
  left join pgboss.queue q on q.name = f.name
  on conflict do nothing
  returning id
)
select count(*)::int as count
from stored
