with delivered as (
  select r.team_id, r.contact_id as id, r.cause, greatest((
    select max(d.occurred_at)
    from email_events d
    where d.team_id = r.team_id
      and d.contact_id = r.contact_id
      and d.effect = 'delivered'
  ), (
    select max(v.occurred_at)
    from (
      select team_id, id, contact_id
      from accepted_emails
      where recipient_identities(to_emails) && array[lower(c.email), c.identity] offset 0
    ) e
    cross join lateral (
      select status
      from email_states
      where team_id = e.team_id
        and id = e.id offset 0
    ) s
    join email_events v on v.team_id = e.team_id
      and v.email_id = e.id
      and v.kind = 'sent'
      and (e.contact_id = r.contact_id or lower(v.recipient) = c.identity)
    where e.team_id = r.team_id
      and s.status = 'sent'
      and v.occurred_at < to_timestamp($1)
  )) as at
  from unnest($2::uuid[], $3::uuid[], $4::json[]) as r (team_id, contact_id, cause)
  join contacts c on c.team_id = r.team_id
    and c.id = r.contact_id
), judged as materialized (
  select d.team_id, d.id, d.cause, (
    select count(*)
    from email_events s
    where s.team_id = d.team_id
      and s.contact_id = d.id
      and s.effect = 'soft'
      and s.occurred_at >= coalesce(d.at, '-infinity')
      and s.occurred_at > coalesce(c.lifted_at, '-infinity')
  ) >= $5 as over
  from delivered d
  join contacts c on c.team_id = d.team_id
    and c.id = d.id
)
update contacts c
set status = case when j.over then 'bounced' when c.status = 'bounced' then coalesce(c.status_before,
  'subscribed') else c.status end, suppression = case when j.over then 'bounced' end, suppression_cause = case
  when j.over then j.cause end, suppressed_softly = j.over, status_before = case
  when j.over then c.status end, updated_at = greatest(to_timestamp($6),
  updated_at + interval '1 millisecond')
from judged j
where c.team_id = j.team_id
  and c.id = j.id
  and (j.over and c.suppression is null and c.status in ('subscribed', 'unsubscribed') or not j.over
    and c.suppressed_softly)
returning c.team_id, c.id as contact_id, (exists (
  select
  from webhook_endpoints w
  where w.team_id = c.team_id
    and (w.state = 'enabled' or w.disabled_at > now() - $7 * interval '1 day')
)) as has_listeners, j.over
