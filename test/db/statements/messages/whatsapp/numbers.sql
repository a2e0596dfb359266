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
