-- The one clock for rate, quota, period and pauses: no process's own counts (decisions: bucket). Tests replace it.
create function service_time() returns timestamptz language sql volatile as 'select clock_timestamp()';

-- Teams, what each is subscribed to, and the one row per team that every charge goes through.
create table teams (
  id uuid primary key,
  name text not null,
  created_at timestamptz not null,
  -- Since then its credentials are refused and its queued messages wait; null while it is in good standing.
  suspended_at timestamptz,
  -- When the last suspension ended: what had waited by then goes out at the next sweep.
  resumed_at timestamptz
);

-- Figures set here win over the plan's (decisions: limits of a team); no period means the calendar month.
create table subscriptions (
  team_id uuid primary key references teams (id) on delete cascade,
  plan_key text not null references plans (key),
  email_limit integer check (email_limit >= 0),
  contact_limit integer check (contact_limit >= 0),
  whatsapp_limit integer check (whatsapp_limit >= 0),
  send_rate_per_second double precision check (send_rate_per_second > 0),
  period_start timestamptz,
  period_end timestamptz,
  check ((period_start is null) = (period_end is null)),
  check (period_start < period_end)
);

-- Locked first by whatever charges the team. Half-empty pages keep its many updates inside the page (HOT).
create table allowances (
  team_id uuid primary key references teams (id) on delete cascade,
  period_start timestamptz not null,
  period_end timestamptz not null,
  emails_used integer not null default 0 check (emails_used >= 0),
  whatsapp_used integer not null default 0 check (whatsapp_used >= 0),
  contacts_used integer not null default 0 check (contacts_used >= 0),
  bucket_tokens double precision not null,
  refilled_at timestamptz not null,
  -- The places of the team's last jobs in the lines before the delivery queues (db/queue/line.ts).
  email_place bigint not null default 0,
  whatsapp_place bigint not null default 0
) with (fillfactor = 50);

-- The highest place that was given in each line.
create sequence "deliver-email-places" minvalue 0 start 0;
create sequence "deliver-whatsapp-places" minvalue 0 start 0;
