-- readRamps
select name, state, day_limit as
limit, factor, used, day = (service_time() at time zone 'UTC')::date as is_today, (
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
