-- broadcastById
select team_id, id, state, state_reason, brake, idempotency_key, template_version_id, link_base,
  audience_until, audience, cursor, walked_at, created_at, updated_at, started_at, ended_at, name,
  from_address, reply_to, subject, template_id, topic_ids, exclude_topic_ids, conditions, variables, headers,
  tags, rate_per_minute, send_at
from broadcasts
where team_id = $1
  and id = $2

-- broadcastByKey
select team_id, id, state, state_reason, brake, idempotency_key, template_version_id, link_base,
  audience_until, audience, cursor, walked_at, created_at, updated_at, started_at, ended_at, name,
  from_address, reply_to, subject, template_id, topic_ids, exclude_topic_ids, conditions, variables, headers,
  tags, rate_per_minute, send_at
from broadcasts
where team_id = $1
  and idempotency_key = $2

-- broadcastsOfTeam
select team_id, id, state, state_reason, brake, idempotency_key, template_version_id, link_base,
  audience_until, audience, cursor, walked_at, created_at, updated_at, started_at, ended_at, name,
  from_address, reply_to, subject, template_id, topic_ids, exclude_topic_ids, conditions, variables, headers,
  tags, rate_per_minute, send_at
from broadcasts
where team_id = $1
  and id < $2
  and state = $3
order by id desc
limit $4 offset $5

-- broadcastsPausedFor
select team_id, id, state, state_reason, brake, idempotency_key, template_version_id, link_base,
  audience_until, audience, cursor, walked_at, created_at, updated_at, started_at, ended_at, name,
  from_address, reply_to, subject, template_id, topic_ids, exclude_topic_ids, conditions, variables, headers,
  tags, rate_per_minute, send_at
from broadcasts
where state = 'paused'
  and state_reason = $1
order by team_id, id
for no key update

-- deleteBroadcastDraft
delete from broadcasts
where team_id = $1
  and id = $2
  and state = 'draft'

-- insertBroadcast
insert into broadcasts (team_id, id, idempotency_key, state, created_at, updated_at, name, from_address,
  reply_to, subject, template_id, topic_ids, exclude_topic_ids, conditions, variables, headers, tags,
  rate_per_minute, send_at)
values ($1, $2, $3, 'draft', to_timestamp($4), to_timestamp($5), $6, $7, $8, $9, $10::uuid, $11::uuid[],
  $12::uuid[], $13::json, $14::json, $15::json, $16::json, $17::integer, $18::timestamptz)
on conflict (team_id, idempotency_key)
where idempotency_key is not null do nothing
returning team_id, id, state, state_reason, brake, idempotency_key, template_version_id, link_base,
  audience_until, audience, cursor, walked_at, created_at, updated_at, started_at, ended_at, name,
  from_address, reply_to, subject, template_id, topic_ids, exclude_topic_ids, conditions, variables, headers,
  tags, rate_per_minute, send_at

-- lockBroadcast
select team_id, id, state, state_reason, brake, idempotency_key, template_version_id, link_base,
  audience_until, audience, cursor, walked_at, created_at, updated_at, started_at, ended_at, name,
  from_address, reply_to, subject, template_id, topic_ids, exclude_topic_ids, conditions, variables, headers,
  tags, rate_per_minute, send_at
from broadcasts
where team_id = $1
  and id = $2
for no key update

-- lockBulkPaused
select team_id, id, state, state_reason, brake, idempotency_key, template_version_id, link_base,
  audience_until, audience, cursor, walked_at, created_at, updated_at, started_at, ended_at, name,
  from_address, reply_to, subject, template_id, topic_ids, exclude_topic_ids, conditions, variables, headers,
  tags, rate_per_minute, send_at
from broadcasts
where team_id = $1
  and state = 'paused'
  and state_reason = any($2::text[])
order by id
for no key update

-- lockSendingBroadcasts
select team_id, id, state, state_reason, brake, idempotency_key, template_version_id, link_base,
  audience_until, audience, cursor, walked_at, created_at, updated_at, started_at, ended_at, name,
  from_address, reply_to, subject, template_id, topic_ids, exclude_topic_ids, conditions, variables, headers,
  tags, rate_per_minute, send_at
from broadcasts
where team_id = $1
  and state = 'sending'
order by id
for no key update

-- lockUnderWay
select team_id, id, state, state_reason, brake, idempotency_key, template_version_id, link_base,
  audience_until, audience, cursor, walked_at, created_at, updated_at, started_at, ended_at, name,
  from_address, reply_to, subject, template_id, topic_ids, exclude_topic_ids, conditions, variables, headers,
  tags, rate_per_minute, send_at
from broadcasts
where state in ('scheduled', 'sending')
order by team_id, id
for no key update

-- moveCursor
update broadcasts
set cursor = $1, walked_at = to_timestamp($2)
where team_id = $3
  and id = $4

-- newestBroadcasts
select id, name, state, state_reason, send_at, started_at, audience, topic_ids
from broadcasts
where team_id = $1
order by id desc
limit $2

-- openBroadcasts
select team_id, id, state, state_reason, brake, idempotency_key, template_version_id, link_base,
  audience_until, audience, cursor, walked_at, created_at, updated_at, started_at, ended_at, name,
  from_address, reply_to, subject, template_id, topic_ids, exclude_topic_ids, conditions, variables, headers,
  tags, rate_per_minute, send_at
from broadcasts
where team_id = $1
  and state in ('sending', 'paused', 'scheduled')
order by id desc
limit $2

-- readSendingPlace
select is_at_home() as is_home, team_id in (
  select id
  from teams
  where test
) as is_test, exists (
  select
  from teams s
  where s.id = broadcasts.team_id
    and s.suspended_at is not null
) as is_suspended, (
  select bulk_pause
  from teams t
  where t.id = broadcasts.team_id
    and t.bulk_paused_at is not null
)
from broadcasts
where team_id = $1
  and id = $2

-- saveAutoPause
update broadcasts
set brake = $1
where team_id = $2
  and id = $3

-- updateDraft
update broadcasts
set (name, from_address, reply_to, subject, template_id, topic_ids, exclude_topic_ids, conditions, variables,
  headers, tags, rate_per_minute, send_at) = (
  select $1, $2, $3, $4, $5::uuid, $6::uuid[], $7::uuid[], $8::json, $9::json, $10::json, $11::json,
    $12::integer, $13::timestamptz
), updated_at = greatest(to_timestamp($14), updated_at + interval '1 millisecond')
where team_id = $15
  and id = $16
  and state = 'draft'
returning team_id, id, state, state_reason, brake, idempotency_key, template_version_id, link_base,
  audience_until, audience, cursor, walked_at, created_at, updated_at, started_at, ended_at, name,
  from_address, reply_to, subject, template_id, topic_ids, exclude_topic_ids, conditions, variables, headers,
  tags, rate_per_minute, send_at

-- updateState
update broadcasts
set state = $1, state_reason = $2, updated_at = greatest(to_timestamp($3),
  updated_at + interval '1 millisecond'), template_version_id = $4, link_base = $5, send_at = $6,
  audience = $7, audience_until = to_timestamp($8), started_at = to_timestamp($9)
where team_id = $10
  and id = $11
  and state = any($12::text[])
returning team_id, id, state, state_reason, brake, idempotency_key, template_version_id, link_base,
  audience_until, audience, cursor, walked_at, created_at, updated_at, started_at, ended_at, name,
  from_address, reply_to, subject, template_id, topic_ids, exclude_topic_ids, conditions, variables, headers,
  tags, rate_per_minute, send_at, (exists (
  select
  from webhook_endpoints w
  where w.team_id = broadcasts.team_id
    and (w.state = 'enabled' or w.disabled_at > now() - $13 * interval '1 day')
)) as has_listeners
