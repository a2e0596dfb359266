-- addresseesOfEmail
select to_emails, first_cc, first_bcc
from accepted_emails
where team_id = $1
  and id = $2

-- bodiesOfEmail
select html, body_text, variables
from accepted_emails
where team_id = $1
  and id = $2

-- emailById
select team_id, id, domain_id, template_id, template_version_id, from_address, to_emails, first_cc, first_bcc,
  subject, size_kb, tags, status, idempotency_key, created_at, requeued_at, provider_message_id, broadcast_id,
  contact_id, headers, reply_to, http_request_id, pending_recipients, attachments, scheduled_at, expires_at,
  due_at, internal, html, body_text, variables
from emails
where team_id = $1
  and id = $2

-- emailReferences
select d.team_id, case d.status when 'verified' then 'domain' else 'pending' end as kind, d.name as key, d.id,
  null::uuid as version_id, null::text[] as slots
from unnest($1::uuid[], $2::text[]) as w (team_id, key)
join domains d on d.team_id = w.team_id
  and d.name = w.key
union all
select t.team_id, 'template', t.id::text, t.id, v.id, v.slots
from unnest($3::uuid[], $4::uuid[]) as w (team_id, key)
join templates t on t.team_id = w.team_id
  and t.id = w.key
join template_versions v on v.team_id = t.team_id
  and v.id = t.version_id
union all
select c.team_id, 'contact', c.identity, c.id, null, null
from unnest($5::uuid[], $6::text[]) as w (team_id, key)
join contacts c on c.team_id = w.team_id
  and c.identity = w.key

-- emailsByKeys
select e.team_id, e.idempotency_key, e.id, e.from_address
from unnest($1::uuid[], $2::text[]) as w (team_id, key)
join accepted_emails e on e.team_id = w.team_id
  and e.idempotency_key = w.key

-- insertEmails
with charged as (
  update allowances a
  set (period_start, period_end, emails_used, whatsapp_used, contacts_used, storage_used, bucket_tokens,
    refilled_at, email_place, email_batch_place, broadcast_place, whatsapp_place, whatsapp_batch_place,
    whatsapp_parts_place, whatsapp_parts_batch_place) = (
    select f.period_start, f.period_end, f.emails_used, f.whatsapp_used, f.contacts_used, f.storage_used,
      f.bucket_tokens, f.refilled_at, f.email_place, f.email_batch_place, f.broadcast_place, f.whatsapp_place,
      f.whatsapp_batch_place, f.whatsapp_parts_place, f.whatsapp_parts_batch_place
  )
  from unnest($1::uuid[], $2::timestamptz[], $3::timestamptz[], $4::int4[], $5::int4[], $6::int4[],
    $7::int8[], $8::float8[], $9::timestamptz[], $10::int8[], $11::int8[], $12::int8[], $13::int8[],
    $14::int8[], $15::int8[], $16::int8[]) as f (team_id, period_start, period_end, emails_used,
    whatsapp_used, contacts_used, storage_used, bucket_tokens, refilled_at, email_place, email_batch_place,
    broadcast_place, whatsapp_place, whatsapp_batch_place, whatsapp_parts_place, whatsapp_parts_batch_place)
  where a.team_id = f.team_id
), item as materialized (
  select *
  from unnest($17::uuid[], $18::uuid[], $19::uuid[], $20::uuid[], $21::uuid[], $22::json[], $23::text[],
    $24::json[], $25::int2[], $26::int2[], $27::text[], $28::text[], $29::json[], $30::text[],
    $31::timestamptz[], $32::uuid[], $33::uuid[], $34::text[], $35::json[], $36::text[], $37::text[],
    $38::json[], $39::bool[], $40::text[], $41::bool[], $42::text[], $43::float8[], $44::timestamptz[],
    $45::timestamptz[], $46::timestamptz[]) as item (team_id, id, domain_id, template_id, template_version_id,
    variables, from_address, to_emails, first_cc, first_bcc, subject, html, tags, idempotency_key, created_at,
    contact_id, broadcast_id, body_text, headers, reply_to, http_request_id, attachments, internal, person,
    batch, status, size_kb, scheduled_at, expires_at, due_at)
), accepted as (
  insert into accepted_emails (team_id, id, domain_id, template_id, template_version_id, variables,
    from_address, to_emails, first_cc, first_bcc, subject, html, tags, idempotency_key, created_at,
    contact_id, broadcast_id, body_text, headers, reply_to, http_request_id, attachments, internal, person,
    batch)
  select team_id, id, domain_id, template_id, template_version_id, variables, from_address, array(
    select json_array_elements_text(to_emails)
  ), first_cc, first_bcc, subject, html, tags, idempotency_key, created_at, contact_id, broadcast_id,
    body_text, headers, reply_to, http_request_id, attachments, internal, person, coalesce(batch, false)
  from item
), stored as (
  insert into email_states (team_id, id, created_at, broadcast_id, contact_id, internal, status, size_kb,
    scheduled_at, expires_at, due_at)
  select team_id, id, created_at, broadcast_id, case when broadcast_id is not null then contact_id end,
    internal, status, size_kb, scheduled_at, expires_at, due_at
  from item
), job as (
  insert into pgboss.job (id, name, data, priority, start_after, created_on, keep_until, expire_seconds,
    deletion_seconds, retry_limit, retry_delay, retry_backoff, retry_delay_max, policy, dead_letter,
    heartbeat_seconds, group_id)
  select f.id, f.name, f.data, f.priority, now(), now(), now() + q.retention_seconds * interval '1 second',
    q.expire_seconds, q.deletion_seconds, q.retry_limit, q.retry_delay, coalesce(q.retry_backoff, false),
    q.retry_delay_max, q.policy, q.dead_letter, q.heartbeat_seconds, f.group_id
  from unnest($47::text[], $48::uuid[], $49::jsonb[], $50::int4[], $51::text[]) as f (name, id, data,
    priority, group_id)
  left join pgboss.queue q on q.name = f.name
  on conflict do nothing
  returning id
)
select 1 / (count(*) = $52)::int
from job

-- insertEmailsWithFiles
with charged as (
  select
), item as materialized (
  select *
  from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::uuid[], $6::json[], $7::text[], $8::json[],
    $9::int2[], $10::int2[], $11::text[], $12::text[], $13::json[], $14::text[], $15::timestamptz[],
    $16::uuid[], $17::uuid[], $18::text[], $19::json[], $20::text[], $21::text[], $22::json[], $23::bool[],
    $24::text[], $25::bool[], $26::text[], $27::float8[], $28::timestamptz[], $29::timestamptz[],
    $30::timestamptz[]) as item (team_id, id, domain_id, template_id, template_version_id, variables,
    from_address, to_emails, first_cc, first_bcc, subject, html, tags, idempotency_key, created_at,
    contact_id, broadcast_id, body_text, headers, reply_to, http_request_id, attachments, internal, person,
    batch, status, size_kb, scheduled_at, expires_at, due_at)
), accepted as (
  insert into accepted_emails (team_id, id, domain_id, template_id, template_version_id, variables,
    from_address, to_emails, first_cc, first_bcc, subject, html, tags, idempotency_key, created_at,
    contact_id, broadcast_id, body_text, headers, reply_to, http_request_id, attachments, internal, person,
    batch)
  select team_id, id, domain_id, template_id, template_version_id, variables, from_address, array(
    select json_array_elements_text(to_emails)
  ), first_cc, first_bcc, subject, html, tags, idempotency_key, created_at, contact_id, broadcast_id,
    body_text, headers, reply_to, http_request_id, attachments, internal, person, coalesce(batch, false)
  from item
), stored as (
  insert into email_states (team_id, id, created_at, broadcast_id, contact_id, internal, status, size_kb,
    scheduled_at, expires_at, due_at)
  select team_id, id, created_at, broadcast_id, case when broadcast_id is not null then contact_id end,
    internal, status, size_kb, scheduled_at, expires_at, due_at
  from item
), published as (
  update files f
  set state = 'ready', last_used_at = service_time()
  from unnest($31::uuid[], $32::uuid[]) as w (team_id, id)
  where f.team_id = w.team_id
    and f.id = w.id
    and f.state = 'loading'
  returning 1
), noted as (
  insert into email_files (team_id, email_id, sha256)
  select w.team_id, w.email_id, decode(w.sha256, 'hex')
  from unnest($33::uuid[], $34::text[], $35::uuid[]) as w (team_id, sha256, email_id)
  on conflict do nothing
), job as (
  select
)
select (
  select count(*)
  from job
)::int as jobs, (
  select count(*)
  from published
)::int as published

-- senderOfEmail
select from_address
from accepted_emails
where team_id = $1
  and id = $2
