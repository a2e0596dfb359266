-- endReports
update reports r
set state = s.state, reason = s.reason, team_ids = array(
  select json_array_elements_text(s.team_ids)::uuid
  order by 1
)
from unnest($1::uuid[], $2::text[], $3::text[], $4::json[]) as s (id, state, reason, team_ids)
where r.id = s.id
  and r.state = 'pending'

-- insertReports
insert into reports (id, provider, event_key, body, received_at, retry_until)
select id, provider, event_key, substring($1::bytea from begin for bytes), received_at, retry_until
from unnest($2::uuid[], $3::text[], $4::text[], $5::int4[], $6::int4[], $7::timestamptz[],
  $8::timestamptz[]) as r (id, provider, event_key, begin, bytes, received_at, retry_until)
order by provider, event_key, id
on conflict (provider, event_key) do nothing
returning id
