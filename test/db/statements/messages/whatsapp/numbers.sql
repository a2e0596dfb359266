-- allNumbers
select n.name, n.phone_number_id, n.account_id, n.display_phone_number, n.verified_name, n.quality,
  n.messaging_limit, n.messages_per_second, n.paused_at is not null
  or exists (
  select
  from senders s
  where s.key = 'whatsapp:' || n.phone_number_id
    and s.paused_until > (
    select service_time()
  )
) as paused, n.subscribed, n.missing, n.checked_at
from whatsapp_numbers n
where n.name <> $1
order by n.name

-- defaultNumber
select phone_number_id, account_id
from whatsapp_numbers
where name = $1

-- deleteNumber
delete from whatsapp_numbers
where name = $1

-- findTakenNumber
select name
from whatsapp_numbers
where name = $1
  or phone_number_id = $2
order by name <> $3
limit 1

-- insertNumber
insert into whatsapp_numbers (name, phone_number_id, account_id, access_token, app_secret,
  messages_per_second, created_at)
values ($1, $2, $3, $4, $5, $6, to_timestamp($7))
on conflict do nothing
returning name

-- lockSealedNumbers
select name, access_token, app_secret
from whatsapp_numbers
where access_token is not null
order by name
for update

-- numberByName
select n.name, n.phone_number_id, n.account_id, n.display_phone_number, n.verified_name, n.quality,
  n.messaging_limit, n.messages_per_second, n.paused_at is not null
  or exists (
  select
  from senders s
  where s.key = 'whatsapp:' || n.phone_number_id
    and s.paused_until > (
    select service_time()
  )
) as paused, n.subscribed, n.missing, n.checked_at
from whatsapp_numbers n
where n.name = $1
  and n.name <> $2

-- numberCredentials
select name, phone_number_id, account_id, display_phone_number, access_token, app_secret
from whatsapp_numbers
where name = $1
  and name <> $2

-- numberOfTeam
select coalesce(n.name, 'default') as number, n.phone_number_id, n.account_id,
  t.whatsapp_number is null as is_default
from teams t
left join whatsapp_numbers n on n.name = coalesce(t.whatsapp_number, 'default')
where t.id = $1

-- numberSends
select n.name, n.paused_at, s.pause_reason, s.refilled_at as attempted_at, case when s.paused_until > (
  select service_time()
) then s.paused_until end as paused_until, (
  select count(*)
  from teams t
  where t.whatsapp_number = n.name
) as teams
from whatsapp_numbers n
left join senders s on s.key = 'whatsapp:' || n.phone_number_id

-- otherNumberOfId
select name
from whatsapp_numbers
where phone_number_id = $1
  and name <> $2

-- pausedNumbers
select phone_number_id
from whatsapp_numbers
where paused_at is not null

-- setNumberPause
update whatsapp_numbers
set paused_at = to_timestamp($1)
where name = $2

-- setTeamNumber
update allowances
set whatsapp_place = 0, whatsapp_batch_place = 0, whatsapp_parts_place = 0, whatsapp_parts_batch_place = 0
where team_id = $1

-- setTeamNumber
update teams
set whatsapp_number = $1
where id = $2

-- storeCheck
update whatsapp_numbers
set missing = $1::text[], checked_at = to_timestamp($2) , display_phone_number = $3, verified_name = $4,
  quality = $5, messaging_limit = $6, subscribed = $7
where name = $8

-- storeDefaultNumber
insert into whatsapp_numbers as n (name, phone_number_id, account_id, created_at)
values ($1, $2, $3, now())
on conflict (name) do
update
set phone_number_id = excluded.phone_number_id, account_id = excluded.account_id
where (n.phone_number_id, n.account_id) is distinct from (excluded.phone_number_id, excluded.account_id)

-- suspendTemplates
update whatsapp_templates t
set status = 'pending', status_at = to_timestamp($1), updated_at = to_timestamp($2)
where t.team_id = $3
  and coalesce(t.account_id, (
  select account_id
  from whatsapp_numbers
  where name = $4
)) is distinct from $5

-- updateNumber
update whatsapp_numbers
set access_token = coalesce($1, access_token), app_secret = coalesce($2, app_secret),
  messages_per_second = coalesce($3::int, messages_per_second)
where name = $4

-- updateSealedNumbers
update whatsapp_numbers n
set access_token = k.access_token, app_secret = k.app_secret
from unnest($1::text[], $2::bytea[], $3::bytea[]) as k (name, access_token, app_secret)
where n.name = k.name

-- useOfNumber
select (
  select count(*)
  from teams
  where whatsapp_number = $1
) as teams, (
  select count(*)
  from whatsapp_messages
  where phone_number_id = $2
    and (unfinished or due_at is not null)
) as waiting

-- waitingElsewhere
select count(*)
from whatsapp_messages
where team_id = $1
  and (unfinished or due_at is not null)
  and phone_number_id is distinct from $2

-- waitsForDefault
select exists (
  select
  from whatsapp_messages
  where team_id = $1
    and unfinished
    and phone_number_id is null
) as waits
