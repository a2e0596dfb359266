-- longWaits
select count(*) as waiting, count(*) filter (where exists (
  select
  from email_events v
  where v.team_id = m.team_id
    and v.email_id = m.id
    and v.kind = 'gave_up'
    and v.occurred_at >= coalesce(m.tries_from, m.created_at)
)) as given_up, mode() within group (order by refusal.detail) as reason
from (
  select team_id, id, created_at, tries_from
  from email_states m
  where team_id = $1
    and unfinished
    and greatest(created_at, scheduled_at) < to_timestamp($2)
    and not internal
    and not ((
    select t.bulk_pause
    from teams t
    where t.id = m.team_id
      and t.bulk_paused_at is not null
      and (exists (
      select
      from accepted_emails e
      where e.team_id = m.team_id
        and e.id = m.id
        and e.batch
    ) or exists (
      select
      from broadcasts b
      where b.team_id = m.team_id
        and b.id = m.broadcast_id
        and b.state = 'paused'
        and b.state_reason in ('team_bounces', 'team_complaints')
    ))
  ) is not null or (
    select json_build_object('name', r.name, 'limit', r.day_limit)
    from accepted_emails e
    join domains d on d.team_id = e.team_id
      and d.id = e.domain_id
    join teams t on t.id = d.team_id
      and not t.test
    join domain_ramps r on r.name = d.name
      and r.state = 'on'
      and r.used >= r.day_limit
      and r.day = (service_time() at time zone 'UTC')::date
    where m.broadcast_id is not null
      and e.team_id = m.team_id
      and e.id = m.id
  ) is not null or exists (
    select
    from broadcasts b
    where b.team_id = m.team_id
      and b.id = broadcast_id
      and (b.state = 'paused' or b.rate_per_minute is not null)
      and not exists (
      select
      from email_events v
      where v.team_id = m.team_id
        and v.email_id = m.id
        and (v.kind = 'gave_up' or b.state <> 'paused' and v.kind = any($3::text[]))
    )
  ))
  order by id
  limit $4
) m
left join lateral (
  select detail
  from email_events v
  where v.team_id = m.team_id
    and v.email_id = m.id
    and v.kind = any($5::text[])
  order by occurred_at desc
  limit 1
) refusal on true
