-- countHistory
select count(*)::integer as count
from (
  select
  from domains d
  join teams t on t.id = d.team_id
    and not t.test
  join accepted_emails e on e.team_id = d.team_id
    and e.domain_id = d.id
  join email_states s on s.team_id = e.team_id
    and s.id = e.id
  where d.name = $1
    and e.created_at > service_time() - $2::int * interval '1 day'
    and s.provider_message_id is not null
  limit $3
) counted

-- decideRamp
insert into domain_ramps (name, state, day_limit, factor, day)
values ($1, $2, $3, $4, (service_time() at time zone 'UTC')::date)
on conflict (name) do nothing

-- lockRamp
select name, state, day_limit as
limit, factor, used, day = (service_time() at time zone 'UTC')::date as is_today,
  (service_time() at time zone 'UTC')::date::text as today, (
  select count(*)
  from domain_ramp_reports p
  where p.name = r.name
    and p.day = r.day
    and p.kind = $1
)::integer as bounced, (
  select count(*)
  from domain_ramp_reports p
  where p.name = r.name
    and p.day = r.day
    and p.kind = $2
)::integer as complained,
  extract(epoch from (((service_time() at time zone 'UTC')::date + 1)::timestamp at time zone 'UTC') - service_time())::float8 as seconds_left
from domain_ramps r
where name = $3
  and state = 'on'
for no key update

-- readRamps
select name, state, day_limit as
limit, factor, used, day = (service_time() at time zone 'UTC')::date as is_today,
  (service_time() at time zone 'UTC')::date::text as today, (
  select count(*)
  from domain_ramp_reports p
  where p.name = r.name
    and p.day = r.day
    and p.kind = $1
)::integer as bounced, (
  select count(*)
  from domain_ramp_reports p
  where p.name = r.name
    and p.day = r.day
    and p.kind = $2
)::integer as complained,
  extract(epoch from (((service_time() at time zone 'UTC')::date + 1)::timestamp at time zone 'UTC') - service_time())::float8 as seconds_left
from domain_ramps r
where name = any($3::text[])

-- returnPlaces
with held as materialized (
  select name, state, day, used, day_limit
  from domain_ramps
  where name = any($1::text[])
  order by name
  for no key update
), returned as (
  select name, day, count(*)::integer as count
  from unnest($2::text[], $3::date[]) as p (name, day)
  group by name, day
), left_over as (
  select held.*, greatest(0, used - coalesce(count, 0)) as still_used, count
  from held
  left join returned using (name, day)
), saved as (
  update domain_ramps r
  set used = still_used
  from left_over l
  where r.name = l.name
    and l.count is not null
)
select name
from left_over
where name = any($4::text[])
  and (state <> 'on' or day <> (service_time() at time zone 'UTC')::date or still_used < day_limit)

-- saveRamp
update domain_ramps
set state = $1, day_limit = $2, used = $3, day = (service_time() at time zone 'UTC')::date
where name = $4

-- setRamp
insert into domain_ramps as r (name, state, day_limit, factor, day)
values ($1, $2, $3, $4, (service_time() at time zone 'UTC')::date)
on conflict (name) do
update
set state = excluded.state, day_limit = excluded.day_limit, factor = excluded.factor, day = excluded.day,
  used = case when r.day = excluded.day then r.used else 0 end
