-- scheduledStarts
select s.id, b.send_at is not null
  or exists (
  select
  from audit_entries u
  where u.team_id = s.team_id
    and u.detail = s.broadcast_id::text
    and split_part(u.action, '.', 1) = 'broadcast'
    and u.action = 'broadcast.unschedule'
    and u.id > s.id
) as scheduled
from unnest($1::uuid[], $2::uuid[], $3::uuid[]) as s (id, team_id, broadcast_id)
join broadcasts b on b.team_id = s.team_id
  and b.id = s.broadcast_id
