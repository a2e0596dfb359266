-- insertRejectedCalls
delete from refused_calls r
where team_id = any($1::uuid[])
  and id < (
  select id
  from refused_calls k
  where k.team_id = r.team_id
  order by id desc offset $2
  limit 1
)

-- insertRejectedCalls
insert into refused_calls (team_id, id, method, route, code, message, key_prefix, http_request_id, created_at)
select c.*
from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
  $9::timestamptz[]) as c (team_id, id, method, route, code, message, key_prefix, http_request_id, created_at)
join teams t on t.id = c.team_id

-- rejectedCalls
select id, method, route, code, message, key_prefix, http_request_id, created_at
from refused_calls
where team_id = $1
  and key_prefix = $2
order by id desc
limit $3
