-- namesOfTeams
select id, name
from teams
where id = any($1::uuid[])

-- readAccountRows
select a.team_id, p.key as plan, p.kind as plan_kind, (
  select t.test
  from teams t
  where t.id = a.team_id
) as test, coalesce(s.email_limit, p.email_limit, case p.kind
  when 'paid' then (p.tiers -> 0 ->> 'emails')::integer end) as email_limit, coalesce(s.contact_limit,
  p.contact_limit, case p.kind when 'paid' then (
  select (r.contacts_tiers -> 0 ->> 'contacts')::integer from plans r where r.contacts_tiers -> 0 is not null order by r.key <> p.key, r.key limit 1
) end) as contact_limit, coalesce(s.whatsapp_limit, p.whatsapp_limit) as whatsapp_limit,
  coalesce(s.send_rate_per_second, p.send_rate_per_second) as send_rate_per_second, coalesce(s.storage_gb,
  p.storage_gb) as storage_gb, s.period_start as subscription_start, s.period_end as subscription_end,
  a.period_start, a.period_end, a.emails_used, a.whatsapp_used, a.contacts_used, a.storage_used,
  a.bucket_tokens, a.refilled_at, a.email_place, a.email_batch_place, a.broadcast_place, a.whatsapp_place,
  a.whatsapp_batch_place, a.whatsapp_parts_place, a.whatsapp_parts_batch_place, service_time() as now
from allowances a
join subscriptions s on s.team_id = a.team_id
join plans p on p.key = s.plan_key
where a.team_id = any($1::uuid[])

-- teamsAfter
select t.id, t.name, s.plan_key as plan, t.created_at, t.test, t.suspended_at
from teams t
join subscriptions s on s.team_id = t.id
where strpos(lower(t.name), lower($1)) > 0
  and t.id < $2
order by t.id desc
limit $3

-- teamsOfIds
select t.id, t.name, s.plan_key as plan, t.created_at, t.test, t.suspended_at, t.bulk_paused_at
from teams t
join subscriptions s on s.team_id = t.id
where t.id = any($1::uuid[])
