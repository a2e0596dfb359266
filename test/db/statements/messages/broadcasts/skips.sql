-- insertSkips
insert into broadcast_skips (team_id, broadcast_id, contact_id, email, reason, detail, at)
select s.*, to_timestamp($1)
from unnest($2::uuid[], $3::uuid[], $4::uuid[], $5::text[], $6::text[], $7::text[]) as s (team_id,
  broadcast_id, contact_id, email, reason, detail)
on conflict do nothing
