-- sentToNumbers
select m.id, m.recipient, r.template_id, case when m.was_sent and m.status = 'queued' then 'sent'
  else m.status end as status, m.created_at
from whatsapp_messages m
join whatsapp_requests r on r.team_id = m.team_id
  and r.id = m.request_id
where m.team_id = $1
  and m.recipient = any($2::text[])
order by m.id desc
limit $3

-- teamsSentTo
select t.id as team_id, count(*) as count
from teams t
cross join lateral (
  select m.id, m.recipient, r.template_id, case when m.was_sent and m.status = 'queued' then 'sent'
    else m.status end as status, m.created_at
  from whatsapp_messages m
  join whatsapp_requests r on r.team_id = m.team_id
    and r.id = m.request_id
  where m.team_id = t.id
    and m.recipient = any($1::text[])
  order by m.id desc
  limit $2
) sent
group by t.id
