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

-- ownAccounts
select name, account_id
from whatsapp_numbers

-- storeAccountEvents
with given as (
  select distinct on (account_id, field, number) *
  from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::text[]) as e (account_id,
    field, number, detail, occurred_at, limit)
  order by account_id, field, number, occurred_at desc
), stored as (
  insert into whatsapp_account_events as s (account_id, field, number, occurred_at, detail)
  select account_id, field, number, occurred_at, detail
  from given
  on conflict (account_id, field, number) do
  update
  set occurred_at = excluded.occurred_at, detail = excluded.detail
  where s.occurred_at <= excluded.occurred_at
  returning account_id, field, number
)
update whatsapp_numbers n
set messaging_limit = g.limit
from given g
join stored s using (account_id, field, number)
where g.limit is not null
  and n.account_id = g.account_id
  and regexp_replace(n.display_phone_number, '[^0-9]', '', 'g') = g.number
