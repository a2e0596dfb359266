-- statesOf
select e.team_id, e.id, e.broadcast_id, b.rate_per_minute, b.state, ramp.name as ramped, case
  when b.state = 'cancelled' then 'cancelled' when c.id is null then 'deleted'
  when c.status = 'unsubscribed' then 'unsubscribed' when c.suppression is not null or exists (
  select from suppressed_addresses s where s.team_id = ref.team_id and s.identity = c.identity
    and s.cause is not null
) then 'suppressed' when not c.topic_ids && b.topic_ids then 'left_topic' end as reason
from unnest($1::uuid[], $2::uuid[]) as ref (team_id, email_id)
cross join lateral (
  select *
  from accepted_emails
  where team_id = ref.team_id
    and id = ref.email_id offset 0
) e
cross join lateral (
  select *
  from broadcasts
  where team_id = ref.team_id
    and id = e.broadcast_id offset 0
) b
left join lateral (
  select *
  from contacts
  where team_id = ref.team_id
    and id = e.contact_id offset 0
) c on true
left join lateral (
  select r.name
  from domains d
  join teams t on t.id = d.team_id
    and not t.test
  join domain_ramps r on r.name = d.name
    and r.state = 'on'
  where d.team_id = e.team_id
    and d.id = e.domain_id offset 0
) ramp on true
