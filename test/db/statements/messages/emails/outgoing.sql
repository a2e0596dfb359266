-- domainsToDeliver
select domains.*
from (
  select distinct emails.team_id as own_team, emails.domain_id as own_id
  from (
    select team_id as ref_team, email_id as ref_id
    from unnest($1::uuid[], $2::uuid[]) as ref (team_id, email_id)
  ) ref
  cross join lateral (
    select team_id, domain_id
    from accepted_emails
    where team_id = ref_team
      and id = ref_id offset 0
  ) emails
) own
cross join lateral (
  select team_id, name, dkim_selector, dkim_private_key, ed25519_selector, ed25519_private_key, return_path
    and return_path_rejected_at is null as return_path
  from domains
  where team_id = own_team
    and id = own_id
    and status = 'verified' offset 0
) domains

-- emailsToDeliver
select team_id, id, domain_id, template_id, template_version_id, from_address, to_emails, first_cc, first_bcc,
  subject, size_kb, tags, status, idempotency_key, created_at, requeued_at, provider_message_id, broadcast_id,
  contact_id, headers, reply_to, http_request_id, pending_recipients, attachments, scheduled_at, expires_at,
  due_at, internal, is_large, $1::boolean as test, case when not is_large then html end as html, case
  when not is_large then body_text end as body_text, case when not is_large then variables end as variables,
  coalesce(tries_from, created_at) as since, past.*, suppression, team.suppress_transactional,
  stopped.suppressed, case when greatest(emails.created_at,
  emails.scheduled_at) < service_time() - interval '1 hour' then (
  select coalesce(s.dated_at, case when not exists (
    select from email_events v where v.team_id = emails.team_id and v.email_id = emails.id
      and v.kind in ('sent', 'deferred', 'held', 'unknown', 'bounced')
  ) then date_trunc('second', service_time()) end) from email_states s where s.team_id = emails.team_id
    and s.id = emails.id
) end as dated_at, case when team.bulk_paused_at is not null and (
  select a.batch from accepted_emails a where a.team_id = emails.team_id and a.id = emails.id
) then team.bulk_pause end as bulk_pause, (team.suppress_transactional <> 'nothing'
  and emails.broadcast_id is null and not emails.internal and emails.suppression is distinct from 'ignored')
  and exists (
  select
  from erased_contacts x
  where x.team_id = emails.team_id
) as has_erased
from (
  select team_id as ref_team, email_id as ref_id
  from unnest($2::uuid[], $3::uuid[]) as ref (team_id, email_id)
) ref
cross join lateral (
  select *, coalesce(octet_length(html), 0) + coalesce(octet_length(body_text),
    0) + coalesce(pg_column_size(variables), 0) > $4::int as is_large
  from emails
  where team_id = ref_team
    and id = ref_id offset 0
) emails
cross join lateral (
  select count(distinct v.occurred_at) filter (where v.kind = 'deferred') as deferrals,
    count(distinct v.occurred_at) filter (where v.kind = 'unknown') as unknowns,
    min(v.occurred_at) filter (where v.kind <> 'held') as tried_since,
    max(v.occurred_at) filter (where v.kind = 'held') as held_at
  from email_events v
  where v.team_id = emails.team_id
    and v.email_id = emails.id
    and v.kind in ('deferred', 'unknown', 'held')
    and v.occurred_at >= coalesce(emails.tries_from, emails.created_at)
) past
cross join lateral (
  select s.suppress_transactional, s.bulk_paused_at, s.bulk_pause
  from teams s
  where s.id = emails.team_id
    and s.suspended_at is null
    and s.test = $5 offset 0
) team
cross join lateral (
  select json_agg(json_build_object('identity', a.identity, 'cause', a.cause, 'since', a.since, 'response',
    a.response, 'bounced_at', a.bounced_at, 'bounce_response', a.bounce_response)) as suppressed
  from suppressed_addresses a
  where a.team_id = emails.team_id
    and a.identity = any(recipient_identities(emails.to_emails))
    and a.cause is not null
    and (team.suppress_transactional <> 'nothing' and emails.broadcast_id is null and not emails.internal
      and emails.suppression is distinct from 'ignored')
) stopped
where unfinished

-- keepDates
update email_states s
set dated_at = d.dated_at
from unnest($1::uuid[], $2::uuid[], $3::timestamptz[]) as d (team_id, id, dated_at)
where s.team_id = d.team_id
  and s.id = d.id
  and s.dated_at is null
