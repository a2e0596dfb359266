-- Contacts and the topics they can be subscribed to.
create table topics (
  team_id uuid not null references teams (id) on delete cascade,
  id uuid not null,
  name text not null,
  created_at timestamptz not null,
  primary key (team_id, id),
  unique (team_id, name)
);

create table contacts (
  team_id uuid not null references teams (id) on delete cascade,
  id uuid not null,
  email text not null,
  -- The email in lower case with an ASCII domain: what makes two spellings one contact (decisions: identity).
  identity text not null,
  status text not null check (status in ('subscribed', 'unsubscribed', 'bounced', 'complained')),
  -- What a delivery report once found; outlives an unsubscribe (decisions: unsubscribe).
  suppression text check (suppression in ('bounced', 'complained')),
  soft_bounces integer not null default 0,
  properties jsonb not null,
  topic_ids uuid[] not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (team_id, id),
  unique (team_id, identity),
  check (status not in ('bounced', 'complained') or suppression is not null)
-- Its rows are updated in place, by bulk calls and reports: room for that on each page.
) with (fillfactor = 85);
