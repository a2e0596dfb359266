-- allPlans
select key, product, kind, name, blurb, cta, benefits, featured, email_limit, contact_limit, whatsapp_limit,
  domains_limit, storage_gb, send_rate_per_second, overage_per_1000_cents, tiers, contacts_tiers
from plans
order by position
