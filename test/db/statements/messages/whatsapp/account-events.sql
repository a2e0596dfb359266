-- accountEvents
select e.account_id, e.field, e.number, e.occurred_at, e.detail, case when e.number <> '' then coalesce((
  select name from whatsapp_numbers n where n.account_id = e.account_id
    and regexp_replace(n.display_phone_number, '[^0-9]', '', 'g') = e.number
), (
  select name from whatsapp_numbers n where n.name = 'default' and n.account_id = e.account_id
)) end as name
from whatsapp_account_events e
order by e.occurred_at desc, e.account_id, e.field, e.number
limit 100
