-- allPlans
select key, product, kind, name, blurb, cta, benefits, featured, email_limit, contact_limit, whatsapp_limit,
  domains_limit, storage_gb, send_rate_per_second, overage_per_1000_cents, tiers, contacts_tiers
from plans
order by position

-- lockPlans
lock table plans in share row exclusive mode

-- planName
select name
from plans
where key = $1

-- planUse
with subscription as (
  select *
  from subscriptions
  limit $1
)
select plan_key, count(*) as teams, count(*) filter (where num_nonnulls(send_rate_per_second, storage_gb,
  email_limit, contact_limit, whatsapp_limit) > 0) as own
from subscription
group by plan_key

-- plansInUse
select plan_key, count(*) as teams
from subscriptions
group by plan_key

-- replacePlans
delete from plans
where not key = any($1::text[])

-- replacePlans
insert into plans (position, key, product, kind, name, blurb, cta, benefits, featured, email_limit,
  contact_limit, whatsapp_limit, domains_limit, storage_gb, send_rate_per_second, overage_per_1000_cents,
  tiers, contacts_tiers)
select position, key, product, kind, name, blurb, cta, benefits, featured, email_limit, contact_limit,
  whatsapp_limit, domains_limit, storage_gb, send_rate_per_second, overage_per_1000_cents, tiers,
  contacts_tiers
from json_populate_recordset(null::plans, $1::json)
on conflict (key) do
update
set (position, key, product, kind, name, blurb, cta, benefits, featured, email_limit, contact_limit,
  whatsapp_limit, domains_limit, storage_gb, send_rate_per_second, overage_per_1000_cents, tiers,
  contacts_tiers) = row(excluded.position, excluded.key, excluded.product, excluded.kind, excluded.name,
  excluded.blurb, excluded.cta, excluded.benefits, excluded.featured, excluded.email_limit,
  excluded.contact_limit, excluded.whatsapp_limit, excluded.domains_limit, excluded.storage_gb,
  excluded.send_rate_per_second, excluded.overage_per_1000_cents, excluded.tiers, excluded.contacts_tiers)
