-- deliveryState
select case when team_id in (
  select id from teams where test
) then 'deliver-test' when broadcast_id is null then 'deliver-email' else 'deliver-broadcast' end as job,
  null::text as sender, status, unfinished, exists (
  select
  from email_events v
  where v.team_id = m.team_id
    and v.email_id = m.id
    and v.kind = 'gave_up'
    and v.occurred_at >= coalesce(m.tries_from, m.created_at)
) as given_up, exists (
  select
  from pgboss.job n
  where n.name = any($1::text[])
    and n.state <= 'active'
    and (n.id = m.id or n.source_id = m.id)
) as newer, exists (
  select
  from teams s
  where s.id = m.team_id
    and s.suspended_at is not null
) as suspended, (status = 'queued' and provider_message_id is null or pending_recipients is not null)
  and (expired_at is not null or coalesce(expires_at <= service_time(), false)) as expired,
    (status = 'bounced' and provider_message_id is null and not exists (
  select
  from email_events v
  where v.team_id = m.team_id
    and v.email_id = m.id
    and v.kind in ('sent', 'delivered', 'unknown')
)) as refused, coalesce((status = 'bounced' and provider_message_id is null and (
  select bool_and(starts_with(v.detail, $2))
  from email_events v
  where v.team_id = m.team_id
    and v.email_id = m.id
    and v.kind in ('sent', 'delivered', 'unknown', 'bounced')
    and v.occurred_at >= coalesce(m.tries_from, m.created_at)
)), false) as timed_out, exists (
  select
  from accepted_emails e
  where e.team_id = m.team_id
    and e.id = m.id
    and (e.html = '' or $3 = all(e.to_emails) or e.variables::text = '{}' and exists (
    select
    from template_versions v
    where v.team_id = e.team_id
      and v.id = e.template_version_id
      and v.slots <> '{}'
  ))
) as emptied, (
  select t.bulk_pause
  from teams t
  where t.id = m.team_id
    and t.bulk_paused_at is not null
    and (exists (
    select
    from accepted_emails e
    where e.team_id = m.team_id
      and e.id = m.id
      and e.batch
  ) or exists (
    select
    from broadcasts b
    where b.team_id = m.team_id
      and b.id = m.broadcast_id
      and b.state = 'paused'
      and b.state_reason in ('team_bounces', 'team_complaints')
  ))
) as bulk_pause, (
  select json_build_object('name', r.name, 'limit', r.day_limit)
  from accepted_emails e
  join domains d on d.team_id = e.team_id
    and d.id = e.domain_id
  join teams t on t.id = d.team_id
    and not t.test
  join domain_ramps r on r.name = d.name
    and r.state = 'on'
    and r.used >= r.day_limit
    and r.day = (service_time() at time zone 'UTC')::date
  where m.broadcast_id is not null
    and e.team_id = m.team_id
    and e.id = m.id
) as ramp, null::timestamptz as due_at, null::text as handed_over_as
from email_states m
where team_id = $4
  and id = $5

-- findDeadLettered
select m.team_id, m.id, coalesce(m.tries_from, m.created_at) as since, d.reason
from (
  select source_id, data, created_on, source_output ->> 'reason' as reason
  from pgboss.job
  where name = $1
    and state < 'active'
) d
join email_states m on m.team_id = (d.data ->> 'team_id')::uuid
  and m.id = d.source_id
where not exists (
  select
  from email_events v
  where v.team_id = m.team_id
    and v.email_id = m.id
    and v.kind = 'gave_up'
    and v.occurred_at >= coalesce(m.tries_from, m.created_at)
)
order by d.created_on
limit $2

-- markFailed
update webhook_messages
set status = $1
where (team_id, id) in (
  select *
  from unnest($2::uuid[], $3::uuid[]) as ref (team_id, id)
)
  and unfinished

-- markRequeued
with held (held_team, held_id) as materialized (
  select team_id, id
  from email_states m
  where (team_id, id) in (
    select *
    from unnest($1::uuid[], $2::uuid[]) as ref (team_id, id)
  )
    and ((unfinished or (status = 'bounced' and provider_message_id is null and (
    select bool_and(starts_with(v.detail, $3))
    from email_events v
    where v.team_id = m.team_id
      and v.email_id = m.id
      and v.kind in ('sent', 'delivered', 'unknown', 'bounced')
      and v.occurred_at >= coalesce(m.tries_from, m.created_at)
  )) and not exists (
    select
    from accepted_emails e
    where e.team_id = m.team_id
      and e.id = m.id
      and (e.html = '' or $4 = all(e.to_emails) or e.variables::text = '{}' and exists (
      select
      from template_versions v
      where v.team_id = e.team_id
        and v.id = e.template_version_id
        and v.slots <> '{}'
    ))
  )) and not (expired_at is not null or coalesce(expires_at <= service_time(), false)))
  order by team_id, id
  for no key update
)
update email_states m
set requeued_at = to_timestamp($5), tries_from = to_timestamp($6), status = case when (status = 'queued'
  and provider_message_id is null or pending_recipients is not null) then m.status else 'queued' end ,
  suppression = $7
from held
where m.team_id = held_team
  and m.id = held_id
  and not false
returning m.team_id, m.id, case when team_id in (
  select id from teams where test
) then 'deliver-test' when broadcast_id is null then 'deliver-email' else 'deliver-broadcast' end as job,
  null::text as sender

-- requeueableMessages
select team_id, id
from email_states m
where team_id = $1
  and id = any($2::uuid[])
  and status = $3
  and id >= $4
  and id > $5
  and id <= $6
  and (((status = 'queued'
    and provider_message_id is null or pending_recipients is not null) or ((status = 'bounced'
    and provider_message_id is null and not exists (
  select
  from email_events v
  where v.team_id = m.team_id
    and v.email_id = m.id
    and v.kind in ('sent', 'delivered', 'unknown')
)) or (status = 'bounced' and provider_message_id is null and (
  select bool_and(starts_with(v.detail, $7))
  from email_events v
  where v.team_id = m.team_id
    and v.email_id = m.id
    and v.kind in ('sent', 'delivered', 'unknown', 'bounced')
    and v.occurred_at >= coalesce(m.tries_from, m.created_at)
)))) and not exists (
  select
  from accepted_emails e
  where e.team_id = m.team_id
    and e.id = m.id
    and (e.html = '' or $8 = all(e.to_emails) or e.variables::text = '{}' and exists (
    select
    from template_versions v
    where v.team_id = e.team_id
      and v.id = e.template_version_id
      and v.slots <> '{}'
  ))
))
order by id
limit $9

-- requeuedAt
select team_id, id
from email_states
where team_id = $1
  and id = any($2::uuid[])
  and requeued_at = to_timestamp($3)
order by id

-- suppressibleRecipients
select team_id, id, case when not m.internal then coalesce(m.pending_recipients, (
  select e.to_emails from accepted_emails e where e.team_id = m.team_id and e.id = m.id
)) end as recipients, null is not null as of_broadcast
from email_states m
where (team_id, id) in (
  select *
  from unnest($1::uuid[], $2::uuid[]) as ref (team_id, id)
)
order by id
