-- emailsFound
select e.team_id, e.id, e.domain_id, e.template_id, e.template_version_id, e.variables, e.from_address,
  e.to_emails, e.first_cc, e.first_bcc, e.subject, case when e.size_kb is null then e.html end as html,
  e.size_kb, e.tags, e.status, e.idempotency_key, e.created_at, e.requeued_at, e.provider_message_id,
  e.broadcast_id, e.contact_id, null as body_text, e.headers, e.reply_to, e.http_request_id,
  e.pending_recipients, e.attachments, e.scheduled_at, e.expires_at, e.due_at, e.internal
from (
  select team_id as of_team, id as of_id
  from accepted_emails
  where team_id = $1
    and not internal
    and broadcast_id is null
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
  and num_nonnulls(e.broadcast_id) = $4
  and true
order by w.of_id desc
limit $5

-- emailsFound
select e.team_id, e.id, e.domain_id, e.template_id, e.template_version_id, e.variables, e.from_address,
  e.to_emails, e.first_cc, e.first_bcc, e.subject, case when e.size_kb is null then e.html end as html,
  e.size_kb, e.tags, e.status, e.idempotency_key, e.created_at, e.requeued_at, e.provider_message_id,
  e.broadcast_id, e.contact_id, null as body_text, e.headers, e.reply_to, e.http_request_id,
  e.pending_recipients, e.attachments, e.scheduled_at, e.expires_at, e.due_at, e.internal
from emails e
where e.team_id = $1
  and not internal
  and concat_ws(E' ', e.subject, array_to_string(e.to_emails, E' ')) ilike all ($2::text[])
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
  and true
order by e.id desc
limit $7

-- emailsFound
select e.team_id, e.id, e.domain_id, e.template_id, e.template_version_id, e.variables, e.from_address,
  e.to_emails, e.first_cc, e.first_bcc, e.subject, case when e.size_kb is null then e.html end as html,
  e.size_kb, e.tags, e.status, e.idempotency_key, e.created_at, e.requeued_at, e.provider_message_id,
  e.broadcast_id, e.contact_id, null as body_text, e.headers, e.reply_to, e.http_request_id,
  e.pending_recipients, e.attachments, e.scheduled_at, e.expires_at, e.due_at, e.internal
from emails e
where e.team_id = $1
  and not internal
  and concat_ws(E' ', e.subject, array_to_string(e.to_emails, E' ')) ilike all ($2::text[])
  and num_nonnulls(e.broadcast_id) = $3
  and (e.id >= (
  select $4::uuid
) and e.state_id >= (
  select $5::uuid
))
  and (e.id < (
  select $6::uuid
) and e.state_id < (
  select $7::uuid
))
  and (e.id < (
  select $8::uuid
) and e.state_id < (
  select $9::uuid
))
order by e.id desc
limit $10

-- emailsFound
select e.team_id, e.id, e.domain_id, e.template_id, e.template_version_id, e.variables, e.from_address,
  e.to_emails, e.first_cc, e.first_bcc, e.subject, case when e.size_kb is null then e.html end as html,
  e.size_kb, e.tags, e.status, e.idempotency_key, e.created_at, e.requeued_at, e.provider_message_id,
  e.broadcast_id, e.contact_id, null as body_text, e.headers, e.reply_to, e.http_request_id,
  e.pending_recipients, e.attachments, e.scheduled_at, e.expires_at, e.due_at, e.internal
from emails e
where e.team_id = $1
  and not internal
  and concat_ws(E' ', e.subject, array_to_string(e.to_emails, E' ')) ilike all ($2::text[])
  and num_nonnulls(e.broadcast_id) = $3
  and (e.id >= (
  select $4::uuid
) and e.state_id >= (
  select $5::uuid
))
  and (e.id < (
  select $6::uuid
) and e.state_id < (
  select $7::uuid
))
  and true
order by e.id desc
limit $8

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

-- emailsFound
select e.team_id, e.id, e.domain_id, e.template_id, e.template_version_id, e.variables, e.from_address,
  e.to_emails, e.first_cc, e.first_bcc, e.subject, case when e.size_kb is null then e.html end as html,
  e.size_kb, e.tags, e.status, e.idempotency_key, e.created_at, e.requeued_at, e.provider_message_id,
  e.broadcast_id, e.contact_id, null as body_text, e.headers, e.reply_to, e.http_request_id,
  e.pending_recipients, e.attachments, e.scheduled_at, e.expires_at, e.due_at, e.internal
from emails e
where not internal
  and concat_ws(E' ', e.subject, array_to_string(e.to_emails, E' ')) ilike all ($1::text[])
  and (e.id >= (
  select $2::uuid
) and e.state_id >= (
  select $3::uuid
))
  and (e.id < (
  select $4::uuid
) and e.state_id < (
  select $5::uuid
))
  and (e.id < (
  select $6::uuid
) and e.state_id < (
  select $7::uuid
))
order by e.id desc
limit $8

-- emailsFound
select e.team_id, e.id, e.domain_id, e.template_id, e.template_version_id, e.variables, e.from_address,
  e.to_emails, e.first_cc, e.first_bcc, e.subject, case when e.size_kb is null then e.html end as html,
  e.size_kb, e.tags, e.status, e.idempotency_key, e.created_at, e.requeued_at, e.provider_message_id,
  e.broadcast_id, e.contact_id, null as body_text, e.headers, e.reply_to, e.http_request_id,
  e.pending_recipients, e.attachments, e.scheduled_at, e.expires_at, e.due_at, e.internal
from emails e
where not internal
  and concat_ws(E' ', e.subject, array_to_string(e.to_emails, E' ')) ilike all ($1::text[])
  and (e.id >= (
  select $2::uuid
) and e.state_id >= (
  select $3::uuid
))
  and (e.id < (
  select $4::uuid
) and e.state_id < (
  select $5::uuid
))
  and true
order by e.id desc
limit $6
