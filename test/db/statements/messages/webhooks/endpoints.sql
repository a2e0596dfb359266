-- countEndpoints
select
from teams
where id = $1
for no key update

-- countEndpoints
select count(*) as count
from webhook_endpoints
where team_id = $1

-- deleteEndpoint
with gone as (
  delete from webhook_messages
  where team_id = $1
    and endpoint_id = $2
  returning id
), noted as (
  delete from webhook_events
  where team_id = $3
    and message_id in (
    select id
    from gone
  )
), calm as (
  delete from senders
  where key = $4 || $5::text
)
delete from webhook_endpoints
where team_id = $6
  and id = $7

-- deleteEndpointPause
delete from senders
where key = $1 || $2::text

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

-- insertEndpoint
insert into webhook_endpoints (team_id, id, url, name, types, domain, state, secret, created_at)
values ($1, $2, $3, $4, $5::text[], $6, 'enabled', $7, to_timestamp($8))

-- lockSealedSecrets
select team_id, id, secret, previous_secret
from webhook_endpoints
order by team_id, id
for update

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

-- replaceSecret
update webhook_endpoints
set previous_secret = secret, previous_until = to_timestamp($1), secret = $2
where team_id = $3
  and id = $4
  and ($5::text is null or left(encode(sha256(secret), 'hex'), 16) = $6)

-- secretMark
select left(encode(sha256(secret), 'hex'), 16) as mark
from webhook_endpoints
where team_id = $1
  and id = $2

-- setEndpointState
update webhook_endpoints
set state = $1, state_reason = $2, disabled_at = case when $3::text is not null then coalesce(disabled_at,
  now()) end, failing_since = case when $4::text is null then null else failing_since end
where team_id = $5
  and id = $6

-- updateEndpoint
update webhook_endpoints
set failing_since = case when $1::text <> url then null else failing_since end, url = coalesce($2, url),
  name = coalesce($3, name), types = case when $4 then types else $5::text[] end, domain = case
  when $6 then domain else $7 end
where team_id = $8
  and id = $9

-- updateSealedSecrets
update webhook_endpoints w
set secret = k.secret, previous_secret = k.previous_secret
from unnest($1::uuid[], $2::uuid[], $3::bytea[], $4::bytea[]) as k (team_id, id, secret, previous_secret)
where w.team_id = k.team_id
  and w.id = k.id
