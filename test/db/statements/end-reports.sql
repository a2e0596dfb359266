update reports r
set state = s.state, reason = s.reason, team_ids = array(
  select json_array_elements_text(s.team_ids)::uuid
  order by 1
)
from unnest($1::uuid[], $2::text[], $3::text[], $4::json[]) as s (id, state, reason, team_ids)
where r.id = s.id
  and r.state = 'pending'
