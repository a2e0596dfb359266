-- deleteNumberPauses
delete from recipient_pauses
where recipient = any($1::text[])

-- deleteOptOuts
delete from whatsapp_opt_outs
where team_id = $1
  and recipient = any($2::text[])
returning is_out

-- deleteReportsOfNumber
with gone as (
  delete from reports
  where provider in ('whatsapp', 'whatsapp-number')
    and $1 = any(team_ids)
    and encode(body, 'escape') ~ $2
  returning 1
)
select count(*) as deleted
from gone

-- lockMessagesToNumber
select id, unfinished
  or due_at is not null as waits
from whatsapp_messages
where team_id = $1
  and recipient = any($2::text[])
order by id
for update

-- messagesToNumber
select m.id, m.recipient as to, m.country, case when m.was_sent and m.status = 'queued' then 'sent'
  else m.status end as status, m.created_at, r.template_id, r.parameters, m.wa_id, m.pricing, coalesce((
  select json_agg(json_build_object('kind', v.kind, 'occurred_at', v.occurred_at, 'detail',
    v.detail) order by v.occurred_at)
  from whatsapp_events v
  where v.team_id = m.team_id
    and v.message_id = m.id
), '[]') as events
from whatsapp_messages m
join whatsapp_requests r on r.team_id = m.team_id
  and r.id = m.request_id
where m.team_id = $1
  and m.recipient = any($2::text[])
order by m.id

-- optOutsOfNumber
select recipient as to, is_out as opted_out, at, by
from whatsapp_opt_outs
where team_id = $1
  and recipient = any($2::text[])
order by at

-- rewriteMessages
update whatsapp_events
set detail = ''
where team_id = $1
  and message_id = any($2::uuid[])

-- rewriteMessages
update whatsapp_messages
set recipient = $1, country = null, wa_id = null, provider_message_id = null, given_back = null
where team_id = $2
  and id = any($3::uuid[])
returning request_id as id

-- rewriteMessages
update whatsapp_requests r
set parameters = '{}'
where r.team_id = $1
  and r.id = any($2::uuid[])
  and not exists (
  select
  from whatsapp_messages m
  where m.team_id = r.team_id
    and m.request_id = r.id
    and (m.unfinished or m.due_at is not null)
)
