-- contactFacts
select id, email, status, suppression
from contacts
where (team_id, id) in (
  select *
  from unnest($1::uuid[], $2::uuid[]) as ref (team_id, id)
)

-- emailFacts
select e.id, e.from_address, e.to_emails, e.first_cc, e.first_bcc, e.subject, e.tags, e.template_id,
  e.idempotency_key, e.broadcast_id, (
  select requeued_at
  from email_states s
  where s.team_id = e.team_id
    and s.id = e.id
), (
  select count(*)
  from email_events v
  where v.team_id = e.team_id
    and v.email_id = e.id
    and v.kind in ('deferred', 'delayed')
) as delays
from unnest($1::uuid[], $2::uuid[]) as ref (team_id, id)
cross join lateral (
  select *
  from accepted_emails
  where team_id = ref.team_id
    and id = ref.id offset 0
) e
where not internal

-- endpointsToNotify
select team_id, id, types, domain, state = 'enabled' as enabled
from webhook_endpoints w
where team_id = any($1::uuid[])
  and (w.state = 'enabled' or w.disabled_at > now() - $2 * interval '1 day')
order by team_id, id

-- insertWebhooks
with stored as (
  insert into webhook_messages (team_id, id, endpoint_id, event_id, type, subject_id, body, status,
    created_at)
  select team_id, id, endpoint_id, event_id, type, subject_id, body, status, now()
  from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::text[], $6::uuid[], $7::text[],
    $8::text[]) as m (team_id, id, endpoint_id, event_id, type, subject_id, body, status)
  returning team_id, id, endpoint_id, status
), kept as (
  select team_id, id
  from stored
  where status = 'failed'
), noted as (
  insert into webhook_events (team_id, message_id, event_key, kind, occurred_at, detail)
  select team_id, id, uuid_send(gen_random_uuid()), 'gave_up', now(), $9
  from kept
)
insert into pgboss.job (id, name, data, priority, start_after, created_on, keep_until, expire_seconds,
  deletion_seconds, retry_limit, retry_delay, retry_backoff, retry_delay_max, policy, dead_letter,
  heartbeat_seconds, group_id)
select f.id, f.name, f.data, f.priority, now(), now(), now() + q.retention_seconds * interval '1 second',
  q.expire_seconds, q.deletion_seconds, q.retry_limit, q.retry_delay, coalesce(q.retry_backoff, false),
  q.retry_delay_max, q.policy, q.dead_letter, q.heartbeat_seconds, f.group_id
from (
  select 'deliver-webhook' as name, id, coalesce((
    select priority
    from pgboss.job
    where name = $10
      and state < 'active'
      and not blocked
      and start_after <= now()
    order by priority desc, created_on
    limit 1
  ), 0) as priority, jsonb_build_object('team_id', team_id, 'message_id', id, 'endpoint_id',
    endpoint_id) as data, $11::text || endpoint_id as group_id
  from stored
  where status = 'queued'
) f
left join pgboss.queue q on q.name = f.name
on conflict do nothing
returning id
