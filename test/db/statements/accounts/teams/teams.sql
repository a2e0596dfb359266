-- allTeams
select t.id, t.name, s.plan_key as plan, t.created_at, t.test, t.suspended_at
from teams t
join subscriptions s on s.team_id = t.id
order by t.id

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

-- lockExistingAccounts
select
from allowances
where team_id = any($1::uuid[])
order by team_id
for update

-- lockFreeAccountRows
with a as materialized (
  select *
  from allowances
  where team_id = any($1::uuid[])
  order by team_id
  for update skip locked
)
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

-- lockFreeWhatsappAccountRows
with a as materialized (
  select *
  from allowances
  where team_id = any($1::uuid[])
  order by team_id
  for update skip locked
)
select a.team_id, p.key as plan, p.kind as plan_kind, l.test as test, coalesce(s.email_limit, p.email_limit,
  case p.kind when 'paid' then (p.tiers -> 0 ->> 'emails')::integer end) as email_limit,
  coalesce(s.contact_limit, p.contact_limit, case p.kind when 'paid' then (
  select (r.contacts_tiers -> 0 ->> 'contacts')::integer from plans r where r.contacts_tiers -> 0 is not null order by r.key <> p.key, r.key limit 1
) end) as contact_limit, coalesce(s.whatsapp_limit, p.whatsapp_limit) as whatsapp_limit,
  coalesce(s.send_rate_per_second, p.send_rate_per_second) as send_rate_per_second, coalesce(s.storage_gb,
  p.storage_gb) as storage_gb, s.period_start as subscription_start, s.period_end as subscription_end,
  a.period_start, a.period_end, a.emails_used, a.whatsapp_used, a.contacts_used, a.storage_used,
  a.bucket_tokens, a.refilled_at, a.email_place, a.email_batch_place, a.broadcast_place, a.whatsapp_place,
  a.whatsapp_batch_place, a.whatsapp_parts_place, a.whatsapp_parts_batch_place, service_time() as now,
  l.number
from a
cross join lateral (
  select *
  from whatsapp_account_now(a.team_id)
  limit 1
) as l
cross join lateral (
  select (l.subscription).*
) s
cross join lateral (
  select (l.plan).*
) p

-- lockWhatsappAccountRow
with a as materialized (
  select *
  from allowances
  where team_id = $1
  for update
)
select a.team_id, p.key as plan, p.kind as plan_kind, l.test as test, coalesce(s.email_limit, p.email_limit,
  case p.kind when 'paid' then (p.tiers -> 0 ->> 'emails')::integer end) as email_limit,
  coalesce(s.contact_limit, p.contact_limit, case p.kind when 'paid' then (
  select (r.contacts_tiers -> 0 ->> 'contacts')::integer from plans r where r.contacts_tiers -> 0 is not null order by r.key <> p.key, r.key limit 1
) end) as contact_limit, coalesce(s.whatsapp_limit, p.whatsapp_limit) as whatsapp_limit,
  coalesce(s.send_rate_per_second, p.send_rate_per_second) as send_rate_per_second, coalesce(s.storage_gb,
  p.storage_gb) as storage_gb, s.period_start as subscription_start, s.period_end as subscription_end,
  a.period_start, a.period_end, a.emails_used, a.whatsapp_used, a.contacts_used, a.storage_used,
  a.bucket_tokens, a.refilled_at, a.email_place, a.email_batch_place, a.broadcast_place, a.whatsapp_place,
  a.whatsapp_batch_place, a.whatsapp_parts_place, a.whatsapp_parts_batch_place, service_time() as now,
  l.number
from a
cross join lateral (
  select *
  from whatsapp_account_now(a.team_id)
  limit 1
) as l
cross join lateral (
  select (l.subscription).*
) s
cross join lateral (
  select (l.plan).*
) p

-- readAccountRow
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
where a.team_id = $1

-- readContactColumns
select contact_columns
from teams
where id = $1

-- readOverrides
select email_limit, contact_limit, whatsapp_limit, send_rate_per_second, storage_gb
from subscriptions
where team_id = $1

-- readSuppressTransactional
select suppress_transactional
from teams
where id = $1

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

-- setContactColumns
update teams
set contact_columns = $1::text[]
where id = $2

-- setResumed
update teams
set suspended_at = null, resumed_at = service_time()
where id = $1
  and suspended_at is not null
returning id

-- setSuppressTransactional
update teams
set suppress_transactional = $1
where id = $2

-- setSuspended
update teams
set suspended_at = coalesce(suspended_at, to_timestamp($1))
where id = $2

-- setTeamName
update teams
set name = $1
where id = $2

-- teamById
select t.id, t.name, s.plan_key as plan, t.created_at, t.test, t.suspended_at
from teams t
join subscriptions s on s.team_id = t.id
where t.id = $1

-- updateSubscription
update subscriptions
set plan_key = $1, email_limit = $2, contact_limit = $3, whatsapp_limit = $4, send_rate_per_second = $5,
  storage_gb = $6, period_start = coalesce(to_timestamp($7), period_start),
  period_end = coalesce(to_timestamp($8), period_end)
where team_id = $9
