-- insertTeam
insert into allowances (team_id, period_start, period_end, bucket_tokens, refilled_at)
values ($1, $2, $3, $4, $5)

-- insertTeam
insert into subscriptions (team_id, plan_key)
values ($1, $2)

-- insertTeam
insert into teams (id, name, created_at, test)
values ($1, $2, to_timestamp($3), $4)

-- lockAccountRow
with a as materialized (
  select *
  from allowances
  where team_id = $1
  for update
)
select a.team_id, p.key as plan, p.kind as plan_kind, (
  select t.test
  from teams t
  where t.id = a.team_id
) as test, whatsapp_number_now(a.team_id) as number, coalesce(s.email_limit, p.email_limit, case p.kind
  when 'paid' then (p.tiers -> 0 ->> 'emails')::integer end) as email_limit, coalesce(s.contact_limit,
  p.contact_limit, case p.kind when 'paid' then (
  select (r.contacts_tiers -> 0 ->> 'contacts')::integer from plans r where r.contacts_tiers -> 0 is not null order by r.key <> p.key, r.key limit 1
) end) as contact_limit, coalesce(s.whatsapp_limit, p.whatsapp_limit) as whatsapp_limit,
  coalesce(s.send_rate_per_second, p.send_rate_per_second) as send_rate_per_second, coalesce(s.storage_gb,
  p.storage_gb) as storage_gb, s.period_start as subscription_start, s.period_end as subscription_end,
  a.period_start, a.period_end, a.emails_used, a.whatsapp_used, a.contacts_used, a.storage_used,
  a.bucket_tokens, a.refilled_at, a.email_place, a.email_batch_place, a.broadcast_place, a.whatsapp_place,
  a.whatsapp_batch_place, a.whatsapp_parts_place, a.whatsapp_parts_batch_place, service_time() as now
from a
cross join lateral (
  select *
  from subscription_now(a.team_id)
  limit 1
) as l
cross join lateral (
  select (l.subscription).*
) s
cross join lateral (
  select (l.plan).*
) p

-- saveAllowance
update allowances a
set (period_start, period_end, emails_used, whatsapp_used, contacts_used, storage_used, bucket_tokens,
  refilled_at, email_place, email_batch_place, broadcast_place, whatsapp_place, whatsapp_batch_place,
  whatsapp_parts_place, whatsapp_parts_batch_place) = (
  select f.period_start, f.period_end, f.emails_used, f.whatsapp_used, f.contacts_used, f.storage_used,
    f.bucket_tokens, f.refilled_at, f.email_place, f.email_batch_place, f.broadcast_place, f.whatsapp_place,
    f.whatsapp_batch_place, f.whatsapp_parts_place, f.whatsapp_parts_batch_place
)
from unnest($1::uuid[], $2::timestamptz[], $3::timestamptz[], $4::int4[], $5::int4[], $6::int4[], $7::int8[],
  $8::float8[], $9::timestamptz[], $10::int8[], $11::int8[], $12::int8[], $13::int8[], $14::int8[],
  $15::int8[], $16::int8[]) as f (team_id, period_start, period_end, emails_used, whatsapp_used,
  contacts_used, storage_used, bucket_tokens, refilled_at, email_place, email_batch_place, broadcast_place,
  whatsapp_place, whatsapp_batch_place, whatsapp_parts_place, whatsapp_parts_batch_place)
where a.team_id = f.team_id
