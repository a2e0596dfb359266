-- endpointById
select w.id, w.url, w.name, w.types, w.domain, w.state, w.state_reason, w.disabled_at, w.created_at,
  w.last_success_at, w.failing_since, (
  select s.paused_until
  from senders s
  where s.key = $1 || w.id::text
    and s.paused_until > now()
) as paused_until, (
  select count(*)
  from webhook_messages m
  where m.team_id = w.team_id
    and m.endpoint_id = w.id
    and m.unfinished
) as backlog
from webhook_endpoints w
where w.team_id = $2
  and w.id = $3

-- endpointsOfTeam
select w.id, w.url, w.name, w.types, w.domain, w.state, w.state_reason, w.disabled_at, w.created_at,
  w.last_success_at, w.failing_since, (
  select s.paused_until
  from senders s
  where s.key = $1 || w.id::text
    and s.paused_until > now()
) as paused_until, (
  select count(*)
  from webhook_messages m
  where m.team_id = w.team_id
    and m.endpoint_id = w.id
    and m.unfinished
) as backlog
from webhook_endpoints w
where w.team_id = $2
order by w.id

-- pausedEndpoints
select s.key, w.team_id, t.name as team, w.id, w.name, s.paused_until, s.pause_reason as reason
from senders s
join webhook_endpoints w on w.id::text = substr(s.key, $1::int)
join teams t on t.id = w.team_id
where starts_with(s.key, $2)
  and s.paused_until > (
  select service_time()
)
order by s.paused_until desc
limit $3

-- secretMark
select left(encode(sha256(secret), 'hex'), 16) as mark
from webhook_endpoints
where team_id = $1
  and id = $2
