-- bounces
select b.kind, b.detail
from (
  select id
  from email_states
  where team_id = $1
    and broadcast_id = $2
    and broadcast_status = 'bounced'
  limit $3
) e
cross join lateral (
  select kind, detail
  from email_events
  where team_id = $4
    and email_id = e.id
    and kind in ('bounced', 'suppressed')
  order by kind, occurred_at desc
  limit 1
) b

-- bounces
select b.kind, b.detail
from (
  select id
  from email_states
  where team_id = $1
    and rare_status = 'bounced'
    and id >= $2
    and not internal
  order by id desc
  limit $3
) e
cross join lateral (
  select kind, detail
  from email_events
  where team_id = $4
    and email_id = e.id
    and kind in ('bounced', 'suppressed')
  order by kind, occurred_at desc
  limit 1
) b
