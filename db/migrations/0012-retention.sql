-- Retention, and what is left of a person whose data was erased.
-- How far the upkeep has come, so that it need not look through all rows again.
create table upkeep (
  kind text primary key,
  done_until timestamptz not null
);

-- An address that must not be mailed by marketing though its contact is gone: a keyed hash, no address.
create table erased_contacts (
  team_id uuid not null references teams (id) on delete cascade,
  hash bytea not null,
  -- What a contact created anew under the address starts as.
  status text not null check (status in ('unsubscribed', 'bounced', 'complained')),
  suppression text check (suppression in ('bounced', 'complained')),
  erased_at timestamptz not null,
  primary key (team_id, hash),
  check (status not in ('bounced', 'complained') or suppression is not null)
);
