with raised as (
  select e.team_id, e.id, e.created_at, e.broadcast_id, e.internal, e.status as was, c.left_out,
    c.hard_bounced
    and (e.status = 'queued' or not e.hard_bounced) as is_hard, c.hard_bounced
    or e.hard_bounced as hard_bounced, case when c.kind = 'suppressed' and e.status = 'queued' then 'bounced'
      when array_position($1::text[], c.status) > array_position($2::text[], e.status) then c.status
      else e.status end as status, coalesce(e.provider_message_id,
      c.provider_message_id) as provider_message_id, coalesce(e.size_kb, c.size_kb) as size_kb, case
      when c.kind = 'suppressed' and e.status = 'queued' then 'applied' else e.suppression end as suppression,
      case when b.pending is not null then (
    with said as (
      select v.recipient, array_agg(v.occurred_at) filter (where v.kind = 'unknown') as lost,
        array_agg(v.occurred_at) filter (where v.kind in ('unknown', 'sent')) as handed,
        bool_or(v.kind = any($3::text[]) and (e.tries_from is null or v.occurred_at >= e.tries_from)
        and not (v.kind = 'bounced' and v.occurred_at = any(array(
        select t.occurred_at from email_events t where t.team_id = e.team_id and t.email_id = e.id
          and t.kind in ('deferred', 'held', 'unknown')
      )))) as is_reported from email_events v where v.team_id = e.team_id
        and v.email_id = e.id group by v.recipient
    ) select array_agg(p.recipient order by p.place) from unnest(b.pending) with ordinality as p (recipient,
      place) where not exists (
      select from said own join said r on r.recipient = own.recipient or r.handed <@ own.lost where own.recipient = p.recipient and own.lost is not null and r.is_reported
    )
  ) end as pending_recipients
  from email_states e
  join unnest($4::uuid[], $5::uuid[], $6::text[], $7::text[], $8::float8[], $9::text[], $10::json[],
    $11::json[], $12::text[], $13::bool[], $14::bool[]) as c (team_id, email_id, status, provider_message_id,
    size_kb, kind, pending, undecided, seen_id, hard_bounced, left_out) on e.team_id = c.team_id
    and e.id = c.email_id
  cross join lateral (
    select case when c.kind in ('none left', 'suppressed') then null when c.kind = 'a report'
      and e.provider_message_id is null and (e.pending_recipients is not null or e.status = 'queued')
      and not exists (
      select from email_events v where v.team_id = e.team_id and v.email_id = e.id and v.kind = 'unknown'
    ) then array(
      select r from unnest(coalesce(e.pending_recipients, case when c.undecided is null then null else array(
        select json_array_elements_text(c.undecided)
      ) end)) r where r in (
        select json_array_elements_text(c.undecided)
      )
    ) when c.kind = 'an attempt' and e.pending_recipients is not null then array(
      select r from unnest(e.pending_recipients) r where r in (
        select json_array_elements_text(c.undecided)
      )
    ) when c.kind = 'an attempt' and e.provider_message_id is not distinct from c.seen_id then case
      when c.pending is null then null else array(
      select json_array_elements_text(c.pending)
    ) end else e.pending_recipients end as pending
  ) b
), change as (
  select *, was = 'queued'
    and status <> 'queued'
    and suppression is distinct from 'applied' as is_sent, was <> 'complained'
    and status = 'complained' as is_complaint, was <> 'bounced'
    and status = 'bounced'
    and suppression is distinct from 'applied' as is_bounce
  from raised
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
  pending_recipients = c.pending_recipients, suppression = c.suppression, hard_bounced = c.hard_bounced
from change c
where e.team_id = c.team_id
  and e.id = c.id
  and (e.status, e.provider_message_id, e.size_kb, e.pending_recipients, e.suppression,
    e.hard_bounced) is distinct from (c.status, c.provider_message_id, c.size_kb, c.pending_recipients,
    c.suppression, c.hard_bounced)
