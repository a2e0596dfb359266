-- emailFurther
select of_id as id
from (
  select team_id as of_team, id as of_id
  from email_states
  where created_at >= $1
    and created_at < $2
    and not internal
    and id < $3
  order by id desc offset $4
  limit 1
) state

-- emailFurther
select of_id as id
from (
  select team_id as of_team, id as of_id
  from email_states
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
  from email_states
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
