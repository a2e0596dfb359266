-- emailFurther
select of_id as id
from (
  select distinct team_id as of_team, email_id as of_id
  from email_events
  where team_id = $1
    and kind = 'gave_up'
    and email_id < $2
  order by email_id desc offset $3
  limit 1
) state

-- emailFurther
select of_id as id
from (
  select team_id as of_team, id as of_id
  from email_states m
  where team_id = $1
    and not internal
    and id < $2
    and rare_status = $3
  order by id desc offset $4
  limit 1
) state

-- emailFurther
select of_id as id
from (
  select team_id as of_team, id as of_id
  from email_states m
  where team_id = $1
    and not internal
    and id < $2
  order by id desc offset $3
  limit 1
) state

-- emailsFound
select e.team_id, e.id, e.domain_id, e.template_id, e.template_version_id, e.variables, e.from_address,
  e.to_emails, e.first_cc, e.first_bcc, e.subject, case when e.size_kb is null then e.html end as html,
  e.size_kb, e.tags, e.status, e.idempotency_key, e.created_at, e.requeued_at, e.provider_message_id,
  e.broadcast_id, e.contact_id, null as body_text, e.headers, e.reply_to, e.http_request_id,
  e.pending_recipients, e.attachments, e.scheduled_at, e.expires_at, e.due_at, e.internal
from (
  select of_team, of_id
  from (
    select distinct team_id as of_team, email_id as of_id
    from email_events
    where team_id = $1
      and kind = 'gave_up'
      and email_id < $2
    order by email_id desc
  ) f
  cross join lateral (
    select m.id
    from email_states m
    where m.team_id = of_team
      and m.id = of_id
      and ((m.status = 'queued' and m.provider_message_id is null and exists (
      select
      from email_events v
      where v.team_id = m.team_id
        and v.email_id = m.id
        and v.kind = 'gave_up'
        and v.occurred_at >= coalesce(m.tries_from, m.created_at)
    )) is true)
      and not internal
      and broadcast_id is null offset 0
  ) s
  order by of_id desc
  limit $3 offset 0
) w
cross join lateral (
  select *
  from emails
  where team_id = w.of_team
    and id = w.of_id offset 0
) e
where e.team_id = $4
  and not internal
  and ((e.status = 'queued' and e.provider_message_id is null and exists (
  select
  from email_events v
  where v.team_id = e.team_id
    and v.email_id = e.id
    and v.kind = 'gave_up'
    and v.occurred_at >= coalesce(e.tries_from, e.created_at)
)) is true)
  and num_nonnulls(e.broadcast_id) = $5
  and (e.id < (
  select $6::uuid
) and e.state_id < (
  select $7::uuid
))
order by w.of_id desc
limit $8

-- emailsFound
select e.team_id, e.id, e.domain_id, e.template_id, e.template_version_id, e.variables, e.from_address,
  e.to_emails, e.first_cc, e.first_bcc, e.subject, case when e.size_kb is null then e.html end as html,
  e.size_kb, e.tags, e.status, e.idempotency_key, e.created_at, e.requeued_at, e.provider_message_id,
  e.broadcast_id, e.contact_id, null as body_text, e.headers, e.reply_to, e.http_request_id,
  e.pending_recipients, e.attachments, e.scheduled_at, e.expires_at, e.due_at, e.internal
from (
  select team_id as of_team, id as of_id
  from email_states m
  where team_id = $1
    and not internal
    and status = 'queued'
    and unfinished
    and not ((m.status = 'queued' and m.provider_message_id is null and exists (
    select
    from email_events v
    where v.team_id = m.team_id
      and v.email_id = m.id
      and v.kind = 'gave_up'
      and v.occurred_at >= coalesce(m.tries_from, m.created_at)
  )) is true)
  order by id desc
  limit $2 offset 0
) w
cross join lateral (
  select *
  from emails
  where team_id = w.of_team
    and id = w.of_id offset 0
) e
where e.team_id = $3
  and not internal
  and e.status = 'queued'
  and e.unfinished
  and not ((e.status = 'queued' and e.provider_message_id is null and exists (
  select
  from email_events v
  where v.team_id = e.team_id
    and v.email_id = e.id
    and v.kind = 'gave_up'
    and v.occurred_at >= coalesce(e.tries_from, e.created_at)
)) is true)
  and true
order by w.of_id desc
limit $4

-- emailsFound
select e.team_id, e.id, e.domain_id, e.template_id, e.template_version_id, e.variables, e.from_address,
  e.to_emails, e.first_cc, e.first_bcc, e.subject, case when e.size_kb is null then e.html end as html,
  e.size_kb, e.tags, e.status, e.idempotency_key, e.created_at, e.requeued_at, e.provider_message_id,
  e.broadcast_id, e.contact_id, null as body_text, e.headers, e.reply_to, e.http_request_id,
  e.pending_recipients, e.attachments, e.scheduled_at, e.expires_at, e.due_at, e.internal
from emails e
where e.team_id = $1
  and not internal
  and e.subject ilike all ($2::text[])
  and (e.id >= (
  select $3::uuid
) and e.state_id >= (
  select $4::uuid
))
  and (e.id < (
  select $5::uuid
) and e.state_id < (
  select $6::uuid
))
order by e.id desc
limit $7
