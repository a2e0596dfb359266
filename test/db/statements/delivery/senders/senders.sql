-- deleteExpiredRecipientPauses
delete from recipient_pauses
where paused_until <= (
  select service_time()
)

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

-- sendersByKeys
select t.now, to_jsonb(s) as row
from (
  select service_time() as now offset 0
) t
left join senders s on s.key = any($1::text[])
