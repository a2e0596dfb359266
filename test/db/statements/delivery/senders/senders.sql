-- deleteExpiredRecipientPauses
delete from recipient_pauses
where paused_until <= (
  select service_time()
)

-- endPause
update senders s
set paused_until = null, pause_reason = null, troubles = 0, troubled_at = null
where key = $1
returning key, rate, slowed_at, tokens, refilled_at, paused_until, pause_reason, troubles, troubled_at,
  accepted_at, deferrals, (
  select name
  from whatsapp_numbers
  where s.key = 'whatsapp:' || phone_number_id
) as name, service_time() as now

-- extendPauses
with meant as (
  select s.key, p.until, p.reason, s.pause_reason is distinct from p.reason
    or coalesce(s.paused_until <= to_timestamp($1), true) as is_other
  from unnest($2::text[], $3::timestamptz[], $4::text[]) as p (key, until, reason)
  join senders s on s.key = p.key
  order by s.key
  for no key update of s
), changed as (
  update senders s
  set paused_until = m.until, pause_reason = m.reason
  from meant m
  where s.key = m.key
    and (s.paused_until is null or s.paused_until < m.until)
  returning s.key
)
select key, is_other
  and key in (
  select key
  from changed
) as is_news
from meant

-- lockSenders
insert into senders (key, rate, tokens, refilled_at)
select key, ceiling, greatest(1, ceiling), service_time()
from unnest($1::text[], $2::float8[]) as s (key, ceiling)
order by key
on conflict do nothing

-- lockSenders
with held as (
  select key, rate, slowed_at, tokens, refilled_at, paused_until, pause_reason, troubles, troubled_at,
    accepted_at, deferrals
  from senders
  where key = any($1::text[])
  order by key
  for no key update
)
select *, service_time() as now
from held

-- ownSenders
select key, rate, slowed_at, tokens, refilled_at, paused_until, pause_reason, troubles, troubled_at,
  accepted_at, deferrals, (
  select name
  from whatsapp_numbers
  where s.key = 'whatsapp:' || phone_number_id
) as name, service_time() as now
from senders s
where not starts_with(s.key, $1)
order by key

-- pauseRecipients
insert into recipient_pauses (sender, recipient, paused_until, reason)
select distinct on (recipient, sender) sender, recipient, paused_until, reason
from unnest($1::text[], $2::text[], $3::timestamptz[], $4::text[]) as p (sender, recipient, paused_until,
  reason)
order by recipient, sender, paused_until desc
on conflict (recipient, sender) do
update
set paused_until = excluded.paused_until, reason = excluded.reason
where recipient_pauses.paused_until < excluded.paused_until

-- pausedSenders
select p.sender, p.until, p.reason
from (
  select key as sender, paused_until as until, pause_reason as reason
  from senders s
  where paused_until > (
    select service_time()
  )
    and key = $1
  union all
  select 'whatsapp:' || phone_number_id, null, 'paused by an operator'
  from whatsapp_numbers
  where paused_at is not null
    and 'whatsapp:' || phone_number_id = $2
) p
where not exists (
  select
  from whatsapp_numbers n
  where p.sender = 'whatsapp:' || n.phone_number_id
    and n.phone_number_id is distinct from coalesce($3::text, (
    select phone_number_id
    from whatsapp_numbers
    where name = 'default'
  ))
)
order by p.sender, p.until nulls first

-- readFailingSenders
select t.now, to_jsonb(s) as row
from (
  select service_time() as now offset 0
) t
left join (
  select *
  from senders
  where starts_with(key, $1)
    and (troubles > 0 or paused_until is not null)
) s on s.troubles > 0
  or s.paused_until > t.now

-- recipientPauses
select sender, recipient, paused_until, reason, extract(epoch from paused_until - now) as seconds
from recipient_pauses
cross join (
  select service_time() as now offset 0
) t
where recipient = any($1::text[])
  and paused_until > now
order by sender, recipient

-- saveSenders
update senders s
set rate = k.rate, slowed_at = k.slowed_at, tokens = k.tokens, refilled_at = k.refilled_at,
  paused_until = k.paused_until, pause_reason = k.pause_reason, troubles = k.troubles,
  troubled_at = k.troubled_at, accepted_at = k.accepted_at, deferrals = k.deferrals
from unnest($1::text[], $2::float8[], $3::timestamptz[], $4::float8[], $5::timestamptz[], $6::timestamptz[],
  $7::text[], $8::int4[], $9::timestamptz[], $10::timestamptz[], $11::json[]) as k (key, rate, slowed_at,
  tokens, refilled_at, paused_until, pause_reason, troubles, troubled_at, accepted_at, deferrals)
where s.key = k.key

-- sendersAtHome
select t.now, is_at_home() as is_home, to_jsonb(s) as row
from (
  select service_time() as now offset 0
) t
left join senders s on s.key = any($1::text[])

-- sendersByKeys
select t.now, to_jsonb(s) as row
from (
  select service_time() as now offset 0
) t
left join senders s on s.key = any($1::text[])

-- unusedNumbers
select name
from whatsapp_numbers n
where name <> 'default'
  and not exists (
  select
  from teams
  where whatsapp_number = n.name
)
