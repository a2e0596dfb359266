-- The plan catalog: what a team may be subscribed to, with its prices and its words in each language.
-- A directory that is read before any team is known, so no team_id here (design §6).
create table plans (
  key text primary key,
  position integer not null unique deferrable initially deferred,
  product text not null check (product in ('transactional', 'marketing')),
  kind text not null check (kind in ('free', 'paid', 'custom')),
  -- Localized words: {"en": …, "fr": …}; json, not jsonb, so that `plan list` prints what `plan load` took.
  name json not null,
  blurb json not null,
  cta json not null,
  benefits json not null,
  featured boolean not null default false,
  email_limit integer check (email_limit >= 0),
  contact_limit integer check (contact_limit >= 0),
  whatsapp_limit integer check (whatsapp_limit >= 0),
  domains_limit integer check (domains_limit >= 0),
  storage_gb integer check (storage_gb >= 0),
  send_rate_per_second integer check (send_rate_per_second > 0),
  overage_per_1000_cents integer check (overage_per_1000_cents >= 0),
  tiers json,
  contacts_tiers json
);
