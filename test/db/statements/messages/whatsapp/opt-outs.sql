-- hasErasedOptOut
select exists (
  select
  from whatsapp_opt_outs
  where team_id = $1
    and is_out
    and recipient not like '+%'
) as exists

-- messageRepliedTo
select team_id, recipient
from whatsapp_messages
where provider_message_id = $1
  and ($2::text is null or coalesce(phone_number_id = $3, coalesce((
  select phone_number_id = $4
  from whatsapp_numbers
  where name = 'default'
), not exists (
  select
  from whatsapp_numbers
  where phone_number_id = $5
))))

-- optOutsOfTeam
select recipient as to, at, by
from whatsapp_opt_outs
where team_id = $1
  and is_out
  and recipient like '+%'
order by at desc, recipient

-- optedOut
select o.team_id, o.recipient
from unnest($1::uuid[], $2::text[]) as a (team_id, recipient)
cross join lateral (
  select team_id, recipient
  from whatsapp_opt_outs
  where team_id = a.team_id
    and recipient = a.recipient
    and is_out offset 0
) o

-- storeOptOuts
with given as (
  select distinct on (team_id, recipient) *
  from unnest($1::uuid[], $2::text[], $3::bool[], $4::timestamptz[], $5::text[]) as c (team_id, recipient,
    is_out, at, by)
  order by team_id, recipient, at desc, is_out desc
), before as (
  select o.*
  from given g
  join whatsapp_opt_outs o using (team_id, recipient)
  order by o.team_id, o.recipient
  for update of o
), stored as (
  insert into whatsapp_opt_outs as o (team_id, recipient, is_out, at, by)
  select g.team_id, g.recipient, g.is_out, g.at, g.by
  from given g
  join teams t on t.id = g.team_id
  where (
    select count(*)
    from before
  ) >= 0
  order by g.team_id, g.recipient
  on conflict (team_id, recipient) do
  update
  set is_out = excluded.is_out, at = excluded.at, by = excluded.by
  where o.at < excluded.at
    or (o.at = excluded.at and excluded.is_out and not o.is_out)
  returning *
)
select s.team_id, s.recipient, s.is_out, s.at, s.by, coalesce(b.is_out, false) as was_out, (exists (
  select
  from webhook_endpoints w
  where w.team_id = s.team_id
    and (w.state = 'enabled' or w.disabled_at > now() - $6 * interval '1 day')
)) as has_listeners
from stored s
left join before b on b.team_id = s.team_id
  and b.recipient = s.recipient

-- teamsOfNumber
select t.id
from teams t
left join whatsapp_numbers n on n.name = coalesce(t.whatsapp_number, 'default')
where not t.test
  and ($1::text is null or coalesce(n.phone_number_id = $2, coalesce((
  select phone_number_id = $3
  from whatsapp_numbers
  where name = 'default'
), not exists (
  select
  from whatsapp_numbers
  where phone_number_id = $4
))))
order by t.id
limit 2

-- teamsThatWrote
select t.id as team_id, m.recipient
from teams t
cross join lateral (
  select recipient
  from whatsapp_messages
  where team_id = t.id
    and recipient = any($1::text[])
    and accepted_at >= to_timestamp($2)
    and ($3::text is null or coalesce(phone_number_id = $4, coalesce((
    select phone_number_id = $5
    from whatsapp_numbers
    where name = 'default'
  ), not exists (
    select
    from whatsapp_numbers
    where phone_number_id = $6
  ))))
  order by id desc
  limit 1
) m
where not t.test
