-- changeEmails
with change as (
  select c.*, e.*
  from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::float8[], $6::json[], $7::text[],
    $8::bool[], $9::text[], $10::bool[], $11::bool[], $12::bool[], $13::bool[], $14::bool[],
    $15::bool[]) as c (team_id, email_id, status, provider_message_id, size_kb, pending_recipients,
    suppression, hard_bounced, was, is_changed, is_sent, is_hard, is_complaint, is_bounce, left_out)
  join lateral (
    select id, created_at, broadcast_id, internal
    from email_states
    where team_id = c.team_id
      and id = c.email_id offset 0
  ) e on e.id = c.email_id
), counted as (
  insert into figure_deltas (team_id, channel, hour, status, count)
  select c.team_id, 'sending', greatest(date_trunc('hour', c.sent_at, 'UTC'), t.since), what.status, count(*)
  from (
    select c.*, case when c.was = 'queued' then service_time() else coalesce((
      select max(v.occurred_at) from email_events v where v.team_id = c.team_id and v.email_id = c.id
        and v.kind = 'sent'
    ), c.created_at) end as sent_at
    from change c
    where not c.internal
      and (c.is_sent or c.is_hard or c.is_complaint or c.left_out)
  ) c
  cross join lateral (
    select case when reputation_from <= c.sent_at then reputation_from end as since
    from teams
    where id = c.team_id offset 0
  ) t
  cross join lateral (values ('sent', c.is_sent), ('hard_bounced', c.is_hard), ('complained', c.is_complaint),
    ('suppressed', c.left_out)) what (status, is_so)
  where what.is_so
  group by c.team_id, 3, what.status
), ramped as (
  insert into domain_ramp_reports (name, day, kind)
  select ramp.name, (coalesce((
    select max(v.occurred_at)
    from email_events v
    where v.team_id = c.team_id
      and v.email_id = c.id
      and v.kind = 'sent'
  ), service_time()) at time zone 'UTC')::date, case when c.is_complaint then 'complained' else 'bounced' end
  from change c
  join accepted_emails e on e.team_id = c.team_id
    and e.id = c.id
  cross join lateral (
    select r.name
    from domains d
    join teams t on t.id = d.team_id
      and not t.test
    join domain_ramps r on r.name = d.name
      and r.state = 'on'
    where d.team_id = e.team_id
      and d.id = e.domain_id offset 0
  ) ramp
  where c.broadcast_id is not null
    and (c.is_bounce or c.is_complaint)
)
update email_states e
set status = c.status, provider_message_id = c.provider_message_id, size_kb = c.size_kb,
  pending_recipients = case when c.pending_recipients is not null then array(
  select json_array_elements_text(c.pending_recipients)
) end, suppression = c.suppression, hard_bounced = c.hard_bounced
from change c
where e.team_id = c.team_id
  and e.id = c.id
  and c.is_changed

-- emailsByProviderIds
select provider_message_id, team_id, id as email_id
from email_states
where provider_message_id = any($1::text[])
order by id desc

-- lockEmails
select s.team_id, s.id as email_id, e.to_emails, s.rewrites <> e.rewrites as is_late, s.status,
  s.provider_message_id, s.size_kb, s.pending_recipients, s.suppression, s.hard_bounced
from (
  select distinct team_id as ref_team, email_id as ref_id
  from unnest($1::uuid[], $2::uuid[]) as ref (team_id, email_id)
  order by 1, 2
) ref
cross join lateral (
  select *
  from email_states
  where team_id = ref_team
    and id = ref_id
  for no key update
) s
cross join lateral (
  select to_emails, rewrites
  from accepted_emails
  where team_id = ref_team
    and id = ref_id offset 0
) e

-- recipientsOf
select team_id, id as email_id, to_emails
from accepted_emails
where (team_id, id) in (
  select *
  from unnest($1::uuid[], $2::uuid[]) as ref (team_id, email_id)
)

-- senderReportRows
select e.team_id, e.id as email_id, e.to_emails, s.broadcast_id is not null as is_broadcast
from accepted_emails e
join email_states s on s.team_id = e.team_id
  and s.id = e.id
where (e.team_id, e.id) in (
  select *
  from unnest($1::uuid[], $2::uuid[]) as ref (team_id, email_id)
)

-- storedEvents
select v.email_id, v.kind, v.recipient, v.occurred_at, coalesce(v.occurred_at >= s.tries_from,
  true) as is_since
from unnest($1::uuid[], $2::uuid[]) as ref (team_id, email_id)
join email_states s on s.team_id = ref.team_id
  and s.id = ref.email_id
join email_events v on v.team_id = ref.team_id
  and v.email_id = ref.email_id
