-- reservePlaces
with held as materialized (
  select service_time() as now, paced_until, interval '1 minute' / rate_per_minute as apart
  from broadcasts
  where team_id = $1
    and id = $2
    and rate_per_minute is not null
  for no key update
), base as (
  select now, apart, greatest(coalesce(paced_until, now - apart), now - greatest(apart,
    make_interval(secs => $3))) as until
  from held
), given as (
  select now, apart, until, greatest(0, least($4::int,
    floor(extract(epoch from now - until) / extract(epoch from apart))))::int as granted
  from base
), moved as (
  update broadcasts
  set paced_until = until + granted * apart
  from given
  where team_id = $5
    and id = $6
    and granted > 0
)
select granted, extract(epoch from apart)::float8 as interval_seconds, greatest(0,
  extract(epoch from until + (granted + 1) * apart - now))::float8 as wait_seconds
from given

-- statesOf
select e.team_id, e.id, e.broadcast_id, b.rate_per_minute, b.state, ramp.name as ramped, case
  when b.state = 'cancelled' then 'cancelled' when c.id is null then 'deleted'
  when c.status = 'unsubscribed' then 'unsubscribed' when c.suppression is not null or exists (
  select from suppressed_addresses s where s.team_id = ref.team_id and s.identity = c.identity
    and s.cause is not null
) then 'suppressed' when not c.topic_ids && b.topic_ids then 'left_topic' end as reason
from unnest($1::uuid[], $2::uuid[]) as ref (team_id, email_id)
cross join lateral (
  select *
  from accepted_emails
  where team_id = ref.team_id
    and id = ref.email_id offset 0
) e
cross join lateral (
  select *
  from broadcasts
  where team_id = ref.team_id
    and id = e.broadcast_id offset 0
) b
left join lateral (
  select *
  from contacts
  where team_id = ref.team_id
    and id = e.contact_id offset 0
) c on true
left join lateral (
  select r.name
  from domains d
  join teams t on t.id = d.team_id
    and not t.test
  join domain_ramps r on r.name = d.name
    and r.state = 'on'
  where d.team_id = e.team_id
    and d.id = e.domain_id offset 0
) ramp on true

-- statesOfBroadcasts
with these as materialized (
  select e.id, e.team_id, e.broadcast_id
  from unnest($1::uuid[], $2::uuid[]) as ref (team_id, email_id)
  cross join lateral (
    select *
    from email_states
    where team_id = ref.team_id
      and id = ref.email_id offset 0
  ) e
), held as materialized (
  select b.id, b.state
  from broadcasts b
  where (b.team_id, b.id) in (
    select team_id, broadcast_id
    from these
  )
  order by b.id for share
)
select these.id, held.state
from these
join held on held.id = these.broadcast_id

-- unansweredAmong
select ref.email_id as id
from unnest($1::uuid[], $2::uuid[]) as ref (team_id, email_id)
where exists (
  select
  from email_events v
  where v.team_id = ref.team_id
    and v.email_id = ref.email_id
    and v.kind = 'unknown'
)
